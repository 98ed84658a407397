/**
 * Fully sharded data parallelism: every device has its own rows of x and a share of each layer's weight. The weight of
 * layer i + 1 is gathered while layer i computes: lowering puts the gather before the matmul of layer i
 * (docs/passes/host-program.md).
 *
 *   npx braid run examples/transformer/weight-prefetch.ts --check
 */
import { DeviceMesh, Fusion, linear, program, set, tanh } from "@braid-compiler/braid";

export default program({ LAYERS: 4, M: 192, H: 48 }, ({ devices, params: { LAYERS, M, H } }) => {
  const f = new Fusion();
  const x = f.input([M, H]).named("x");
  const shares = Array.from({ length: LAYERS }, (_, i) => f.input([H, H]).named(`w${i}`));
  const mesh = DeviceMesh.range(devices);
  for (const tensor of f.inputs) tensor.setDeviceMesh(mesh).outerSplit(0, devices).parallelize("DIDx");

  const y = shares.reduce((rows, share) => tanh(linear(rows, set(share).setDeviceMesh(mesh))), x);
  f.output(y);
  return f;
});
