/**
 * Allgather in chunks: every chunk of rows is spread over the devices and becomes whole everywhere, with one Allgather
 * per iteration of the stream loop. Later ops could start on the first chunk while the next one travels.
 *
 *   npx braid run examples/allgather.ts --check
 */
import { DeviceMesh, Fusion, program, set } from "@braid-compiler/braid";

export default program({ S: 4, M: 64, N: 512 }, ({ devices, params: { S, M, N } }) => {
  const f = new Fusion();
  const sharded = f.input([M, N], "float");
  const whole = set(sharded);
  f.output(whole);

  const mesh = DeviceMesh.range(devices);
  for (const tensor of [sharded, whole]) tensor.setDeviceMesh(mesh);
  sharded.outerSplit(0, S); // S chunks of rows,
  sharded.outerSplit(1, devices).parallelize("DIDx"); // each of them sharded
  whole.outerSplit(0, S).parallelize("Stream");
  return f;
});
