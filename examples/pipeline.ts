/**
 * A pipeline of two stages on two meshes: the first half of the devices multiplies by W0, the second half by W1. Each
 * stage is tensor parallel. Stage 0 shards the rows of W0, so its result is sharded by columns. Stage 1 contracts over
 * these shards and adds the partial results of its devices. Between the stages, each device sends its shard to its
 * counterpart. With an odd number of devices, one device is in both stages. Every iteration takes one chunk of rows
 * through both: stage 1 works on chunk i while stage 0 works on chunk i+1.
 *
 *   npx braid run examples/pipeline.ts --check
 */
import { DeviceMesh, Fusion, linear, program, set } from "@braid-compiler/braid";

export default program({ S: 8, M: 192, K: 64, H: 96, N: 32 }, ({ devices, params: { S, M, K, H, N } }) => {
  const f = new Fusion();
  const x = f.input([M, K], "float");
  const w0 = f.input([H, K], "float");
  const w1 = f.input([N, H], "float");
  const hidden = linear(x, w0);
  const moved = set(hidden);
  const y = linear(moved, w1);
  f.output(y);

  const half = Math.ceil(devices / 2);
  const all = Array.from({ length: devices }, (_, device) => device);
  const [first, second] = [new DeviceMesh(all.slice(0, half)), new DeviceMesh(all.slice(-half))];
  for (const tensor of [x, w0]) tensor.setDeviceMesh(first);
  for (const tensor of [moved, w1]) tensor.setDeviceMesh(second);
  // H has one part per device of a stage.
  w0.outerSplit(0, half).parallelize("DIDx");
  moved.outerSplit(1, half).parallelize("DIDx");
  w1.outerSplit(1, half).parallelize("DIDx");
  for (const tensor of [moved, y]) tensor.outerSplit(0, S).parallelize("Stream");
  return f;
});
