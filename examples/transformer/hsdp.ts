/**
 * A training step of hybrid sharded data parallelism (HSDP) on a mesh [replica, shard]: every device has its own rows of
 * x, and the devices of a replica share each layer's weight. The weight of the next layer is gathered while a layer
 * computes. A weight's gradient is scattered within each replica and then summed over the replicas, which are two
 * communicators with a stream each: both run under the GEMMs of the layer before.
 *
 *   npx braid run examples/transformer/hsdp.ts --check
 *
 * On each device x and dy are [M / devices, H], a weight and its gradient [H / shards, H].
 */
import { DeviceMesh, Fusion, gradients, linear, program, set, tanh } from "@braid-compiler/braid";

export default program({ REPLICAS: 2, LAYERS: 2, M: 48, H: 24 }, ({ devices, params: { REPLICAS, LAYERS, M, H } }) => {
  const f = new Fusion();
  const x = f.input([M, H]).named("x");
  const dy = f.input([M, H]).named("dy");
  const shares = Array.from({ length: LAYERS }, (_, i) => f.input([H, H]).named(`w${i}`));

  // A number of devices that REPLICAS does not divide is one replica.
  const replica = devices % REPLICAS === 0 ? REPLICAS : 1;
  const mesh = DeviceMesh.of({ replica, shard: devices / replica });
  for (const tensor of f.inputs) tensor.setDeviceMesh(mesh);
  for (const rows of [x, dy]) {
    rows.outerSplit(0, replica).parallelize("replica");
    rows.outerSplit(1, devices / replica).parallelize("shard");
  }
  for (const share of shares) share.outerSplit(0, devices / replica).parallelize("shard");

  const y = shares.reduce((rows, share) => tanh(linear(rows, set(share).setDeviceMesh(mesh))), x);
  f.output(y.named("y"));
  for (const gradient of gradients(f, { of: [y], cotangents: [dy], wrt: shares })) {
    if (gradient !== null) f.output(gradient);
  }
  return f;
});
