/**
 * Reduce-scatter in chunks: the columns are sharded, and each device gets its part of the sums of every chunk of rows,
 * with one ReduceScatter per iteration of the stream loop.
 *
 *   npx braid run examples/reduce-scatter.ts --check
 */
import { DeviceMesh, Fusion, program, sum } from "@braid-compiler/braid";

export default program({ S: 4, M: 1024, N: 64 }, ({ devices, params: { S, M, N } }) => {
  const f = new Fusion();
  const x = f.input([M, N], "float");
  const total = sum(x, [1]);
  f.output(total);

  const mesh = DeviceMesh.range(devices);
  for (const tensor of [x, total]) tensor.setDeviceMesh(mesh);
  x.outerSplit(1, devices).parallelize("DIDx");
  total.outerSplit(0, S).parallelize("Stream");
  total.outerSplit(1, devices).parallelize("DIDx"); // the rows of each chunk
  return f;
});
