/**
 * Matmul, then reduce-scatter, as a pipeline: K is sharded over the devices as in matmul-allreduce, but each device
 * keeps only its rows of every chunk of the sum, where the rows of the residual are.
 *
 *   npx braid run examples/matmul-reduce-scatter.ts --check
 */
import { add, DeviceMesh, Fusion, linear, program } from "@braid-compiler/braid";

export default program({ S: 4, M: 192, K: 768, N: 64 }, ({ devices, params: { S, M, K, N } }) => {
  const f = new Fusion();
  const x = f.input([M, K], "float");
  const w = f.input([N, K], "float");
  const residual = f.input([M, N], "float");
  const y = linear(x, w);
  f.output(add(y, residual));

  const mesh = DeviceMesh.range(devices);
  for (const tensor of [x, w, residual]) tensor.setDeviceMesh(mesh);
  x.outerSplit(1, devices).parallelize("DIDx");
  w.outerSplit(1, devices).parallelize("DIDx");
  y.outerSplit(0, S).parallelize("Stream");
  residual.outerSplit(0, S); // S chunks of rows,
  residual.outerSplit(1, devices).parallelize("DIDx"); // each of them sharded
  return f;
});
