/**
 * A copy in chunks: each iteration of a host loop copies S-th parts of the rows, on the streams in turn. This is the
 * smallest program that shows the two-loop form (one loop makes the streams wait for the caller's, the other does the
 * work). There is no communication: each device holds and copies the whole tensor.
 *
 *   npx braid run examples/set.ts --check
 */
import { DeviceMesh, Fusion, program, set } from "@braid-compiler/braid";

export default program({ S: 8, M: 64, N: 512 }, ({ devices, params: { S, M, N } }) => {
  const f = new Fusion();
  const x = f.input([M, N], "float");
  const y = set(x);
  f.output(y);

  x.setDeviceMesh(DeviceMesh.range(devices));
  y.outerSplit(0, S).parallelize("Stream");
  return f;
});
