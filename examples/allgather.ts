/**
 * Allgather in chunks: axis 1 is sharded over the devices and becomes whole everywhere, with one Allgather per
 * iteration of the stream loop. Later ops could start on the first chunk while the next one travels.
 *
 *   npx braid run examples/allgather.ts --check
 */
import { DeviceMesh, Fusion, program, set } from "braid";

export default program({ S: 4, N: 1024 }, ({ devices, params: { S, N } }) => {
  const f = new Fusion();
  const sharded = f.input([S, devices, N], "float");
  const whole = set(sharded);
  f.output(whole);

  const mesh = DeviceMesh.range(devices);
  for (const tensor of [sharded, whole]) tensor.setDeviceMesh(mesh);
  sharded.axis(1).parallelize("DIDx");
  whole.axis(0).parallelize("Stream");
  return f;
});
