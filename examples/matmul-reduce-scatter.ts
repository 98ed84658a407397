/**
 * Matmul, then reduce-scatter, as a pipeline: K is sharded over the devices as in matmul-allreduce, but each device
 * keeps only its rows of the sum. B is first broadcast along two new axes. That op cannot be a host op, so it becomes a
 * host unit: one generated kernel, posted before the stream loop.
 *
 *   npx braid run examples/matmul-reduce-scatter.ts --check
 */
import { broadcast, DeviceMesh, Fusion, matmul, program, sum } from "braid";

export default program({ S: 4, M: 192, K: 768, N: 64 }, ({ devices, params: { S, M, K, N } }) => {
  const f = new Fusion();
  const a = f.input([S, devices, devices, M / (S * devices), K / devices], "float");
  const b = f.input([devices, K / devices, N], "float");
  // [D, K/D, N] -> [1, D, 1, K/D, N]
  const bAlongRows = broadcast(b, [true, false, true, false, false]);
  const partial = matmul(a, bAlongRows);
  const c = sum(partial, [1]);
  f.output(c);

  const mesh = DeviceMesh.range(devices);
  for (const tensor of [a, b, bAlongRows, partial, c]) tensor.setDeviceMesh(mesh);
  a.axis(1).parallelize("DIDx");
  b.axis(0).parallelize("DIDx");
  bAlongRows.axis(1).parallelize("DIDx");
  partial.axis(0).parallelize("Stream");
  partial.axis(1).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  // Axis 1 is the reduced one; it stays in the tensor's domain, as in nvFuser.
  c.axis(2).parallelize("DIDx");
  return f;
});
