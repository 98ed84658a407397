/**
 * Allreduce in chunks: the columns are sharded, and every device gets the sums of whole rows. Each iteration of the
 * stream loop adds the columns of one chunk of rows on every device, and posts one Allreduce.
 *
 *   npx braid run examples/allreduce.ts --check
 */
import { DeviceMesh, Fusion, program, sum } from "@braid-compiler/braid";

export default program({ S: 4, M: 1024, N: 64 }, ({ devices, params: { S, M, N } }) => {
  const f = new Fusion();
  const x = f.input([M, N], "float");
  const total = sum(x, [1]);
  f.output(total);

  x.setDeviceMesh(DeviceMesh.range(devices));
  x.outerSplit(1, devices).parallelize("DIDx");
  total.outerSplit(0, S).parallelize("Stream");
  return f;
});
