/**
 * Allgather, then matmul, as a pipeline: the rows of A are sharded over the devices, and every device has B. Every
 * iteration of the stream loop gathers one chunk of A and multiplies it. Iterations are on separate streams, so chunk i
 * is multiplied while chunk i+1 travels. Set S to the number of chunks.
 *
 *   npx braid run examples/allgather-matmul.ts --check
 */
import { DeviceMesh, Fusion, matmul, program } from "braid";

export default program({ S: 8, M: 1536, K: 256, N: 128 }, ({ devices, params: { S, M, K, N } }) => {
  const f = new Fusion();
  const a = f.input([S, devices, M / (S * devices), K], "float");
  const b = f.input([K, N], "float");
  const c = matmul(a, b);
  f.output(c);

  const mesh = DeviceMesh.range(devices);
  for (const tensor of [a, b, c]) tensor.setDeviceMesh(mesh);
  a.axis(1).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  return f;
});
