/**
 * A pipeline of two stages on two meshes: the first half of the devices multiplies by W0, the second half by W1. Each
 * stage is tensor parallel. Stage 0 shards the columns of W0, so its result is sharded. Stage 1 contracts over these
 * shards and adds the partial results of its devices. Between the stages, each device sends its shard to its
 * counterpart. With an odd number of devices, one device is in both stages. Every iteration takes one chunk of rows
 * through both: stage 1 works on chunk i while stage 0 works on chunk i+1.
 *
 *   npx braid run examples/pipeline.ts --check
 */
import { DeviceMesh, Fusion, matmul, program, set } from "braid";

export default program({ S: 8, M: 192, K: 64, H: 96, N: 32 }, ({ devices, params: { S, M, K, H, N } }) => {
  const f = new Fusion();
  const x = f.input([S, M / S, K], "float");
  const w0 = f.input([K, H], "float");
  const w1 = f.input([H, N], "float");
  const hidden = matmul(x, w0);
  const moved = set(hidden);
  const y = matmul(moved, w1);
  f.output(y);

  const half = Math.ceil(devices / 2);
  const all = Array.from({ length: devices }, (_, device) => device);
  const [first, second] = [new DeviceMesh(all.slice(0, half)), new DeviceMesh(all.slice(-half))];
  for (const tensor of [x, w0, hidden]) tensor.setDeviceMesh(first);
  for (const tensor of [moved, w1, y]) tensor.setDeviceMesh(second);
  // H has one part per device of a stage: axis 1 of W0, axis 2 of its result, axis 0 of W1.
  w0.split(1, half, { inner: false }).axis(1).parallelize("DIDx");
  hidden.split(2, half, { inner: false }).axis(2).parallelize("DIDx");
  moved.split(2, half, { inner: false }).axis(2).parallelize("DIDx");
  w1.split(0, half, { inner: false }).axis(0).parallelize("DIDx");
  for (const tensor of [hidden, moved, y]) tensor.axis(0).parallelize("Stream");
  return f;
});
