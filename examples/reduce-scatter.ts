/**
 * Reduce-scatter in chunks: a sum over a sharded axis whose result is sharded along another axis. Each device gets its
 * part of the sum, with one ReduceScatter per iteration of the stream loop.
 *
 *   npx braid run examples/reduce-scatter.ts --check
 */
import { DeviceMesh, Fusion, program, sum } from "braid";

export default program({ S: 4, N: 1024 }, ({ devices, params: { S, N } }) => {
  const f = new Fusion();
  const parts = f.input([S, devices, devices, N], "float");
  const total = sum(parts, [1]);
  f.output(total);

  const mesh = DeviceMesh.range(devices);
  for (const tensor of [parts, total]) tensor.setDeviceMesh(mesh);
  parts.axis(1).parallelize("DIDx");
  total.axis(0).parallelize("Stream");
  // Axis 1 is the reduced one; it stays in the tensor's domain, as in nvFuser.
  total.axis(2).parallelize("DIDx");
  return f;
});
