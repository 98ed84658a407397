/**
 * Fully sharded data parallelism: every device has its own rows of x and a share of each layer's weight. The weight of
 * layer i + 1 is gathered while layer i computes: its set() comes before the ops of layer i, and lowering waits for the
 * gather where layer i + 1 reads it (docs/passes/sink-waits.md).
 *
 *   npx braid run examples/transformer/weight-prefetch.ts --check
 */
import { DeviceMesh, Fusion, linear, program, set, tanh } from "braid";

export default program({ LAYERS: 4, M: 192, H: 48 }, ({ devices, params: { LAYERS, M, H } }) => {
  const f = new Fusion();
  const x = f.input([M, H]).named("x");
  const shares = Array.from({ length: LAYERS }, (_, i) => f.input([H, H]).named(`w${i}`));
  const mesh = DeviceMesh.range(devices);
  for (const tensor of f.inputs) tensor.setDeviceMesh(mesh).outerSplit(0, devices).parallelize("DIDx");

  // Whole on every device.
  const gather = (layer: number) => shares[layer] && set(shares[layer]).setDeviceMesh(mesh);
  let weight = gather(0);
  let y = x;
  for (let layer = 0; weight !== undefined; layer++) {
    const next = gather(layer + 1);
    y = tanh(linear(y, weight));
    weight = next;
  }
  f.output(y);
  return f;
});
