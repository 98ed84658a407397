/**
 * Matmul, then Allreduce, as a pipeline: the contracted axis K is sharded over the devices. Each device computes a
 * partial result, and the sum over devices is the result. Every iteration of the stream loop multiplies one chunk of
 * rows and reduces it; chunk i is reduced while chunk i+1 is multiplied.
 *
 *   npx braid run examples/matmul-allreduce.ts --check
 */
import { DeviceMesh, Fusion, linear, program } from "@braid-compiler/braid";

export default program({ S: 8, M: 192, K: 768, N: 64 }, ({ devices, params: { S, M, K, N } }) => {
  const f = new Fusion();
  const x = f.input([M, K], "float");
  const w = f.input([N, K], "float");
  const y = linear(x, w);
  f.output(y);

  const mesh = DeviceMesh.range(devices);
  for (const tensor of [x, w]) {
    tensor.setDeviceMesh(mesh);
    tensor.outerSplit(1, devices).parallelize("DIDx");
  }
  y.outerSplit(0, S).parallelize("Stream");
  return f;
});
