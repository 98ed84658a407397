/**
 * A copy, streamed: each iteration of a host loop copies a row, on the streams in turn. This is the smallest program
 * that shows the two-loop form (one loop makes the streams wait for the caller's, the other does the work). There is no
 * communication: each device holds and copies the whole tensor.
 *
 *   npx braid run examples/set.ts --check
 */
import { DeviceMesh, Fusion, program, set } from "braid";

export default program({ S: 8, N: 4096 }, ({ devices, params: { S, N } }) => {
  const f = new Fusion();
  const input = f.input([S, N], "float");
  const output = set(input);
  f.output(output);

  const mesh = DeviceMesh.range(devices);
  for (const tensor of [input, output]) tensor.setDeviceMesh(mesh);
  output.axis(0).parallelize("Stream");
  return f;
});
