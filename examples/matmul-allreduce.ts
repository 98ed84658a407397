/**
 * Matmul, then Allreduce, as a pipeline: the contracted axis K is sharded over the devices. Each device computes a
 * partial result, and the sum over devices is the result. Every iteration of the stream loop multiplies one chunk of
 * rows and reduces it; chunk i is reduced while chunk i+1 is multiplied.
 *
 *   npx braid run examples/matmul-allreduce.ts --check
 */
import { DeviceMesh, Fusion, matmul, program, sum } from "braid";

export default program({ S: 8, M: 192, K: 768, N: 64 }, ({ devices, params: { S, M, K, N } }) => {
  const f = new Fusion();
  const a = f.input([S, devices, M / S, K / devices], "float");
  const b = f.input([devices, K / devices, N], "float");
  const partial = matmul(a, b);
  const c = sum(partial, [1]);
  f.output(c);

  const mesh = DeviceMesh.range(devices);
  for (const tensor of [a, b, partial, c]) tensor.setDeviceMesh(mesh);
  a.axis(1).parallelize("DIDx");
  b.axis(0).parallelize("DIDx");
  partial.axis(0).parallelize("Stream");
  partial.axis(1).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  return f;
});
