/**
 * Allreduce in chunks: a sum over a sharded axis gives every device the whole sum, one Allreduce per iteration of the
 * stream loop.
 *
 *   npx braid run examples/allreduce.ts --check
 */
import { DeviceMesh, Fusion, program, sum } from "braid";

export default program({ S: 4, N: 1024 }, ({ devices, params: { S, N } }) => {
  const f = new Fusion();
  const parts = f.input([S, devices, N], "float");
  const total = sum(parts, [1]);
  f.output(total);

  const mesh = DeviceMesh.range(devices);
  for (const tensor of [parts, total]) tensor.setDeviceMesh(mesh);
  parts.axis(1).parallelize("DIDx");
  total.axis(0).parallelize("Stream");
  return f;
});
