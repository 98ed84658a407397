/**
 * Allgather, then matmul, as a pipeline: every chunk of rows of X is sharded over the devices, and every device has W.
 * Every iteration of the stream loop gathers one chunk and multiplies it. Iterations are on separate streams, so chunk
 * i is multiplied while chunk i+1 travels. Set S to the number of chunks.
 *
 *   npx braid run examples/allgather-matmul.ts --check
 *
 * examples/nvfuser/allgather-matmul.ts is the same program with the chunks and the devices as axes of their own.
 */
import { DeviceMesh, Fusion, linear, program } from "@braid-compiler/braid";

export default program({ S: 8, M: 1536, K: 256, N: 128, DTYPE: "float" }, ({ devices, params }) => {
  const { S, M, K, N, DTYPE } = params;
  const f = new Fusion();
  const x = f.input([M, K], DTYPE);
  const w = f.input([N, K], DTYPE);
  const y = linear(x, w);
  f.output(y);

  const mesh = DeviceMesh.range(devices);
  for (const tensor of [x, w, y]) tensor.setDeviceMesh(mesh);
  x.outerSplit(0, S); // S chunks of rows,
  x.outerSplit(1, devices).parallelize("DIDx"); // each of them sharded
  y.outerSplit(0, S).parallelize("Stream");
  return f;
});
