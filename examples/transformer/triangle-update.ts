/**
 * AlphaFold's triangle update: each pair i j of residues is updated from the edges i k and j k of all corners k, or with
 * INCOMING=1 from k i and k j. Each device has some of the rows i. Outgoing edges j k are gathered, and incoming ones give
 * partial sums over k, which are scattered. In S chunks of channels, one chunk moves while another is multiplied.
 *
 *   npx braid run examples/transformer/triangle-update.ts --check
 *
 * On each device the pairs are [N / devices, N, C]. Weights are whole.
 */
import {
  DeviceMesh,
  Fusion,
  layerNorm,
  linear,
  matmul,
  mul,
  permute,
  program,
  sigmoid,
  split,
  type TensorView,
} from "@braid-compiler/braid";

export default program(
  { S: 2, N: 24, C: 8, INCOMING: 0, DTYPE: "float" },
  ({ devices, params: { S, N, C, INCOMING, DTYPE } }) => {
    const f = new Fusion();
    const pairs = f.input([N, N, C], DTYPE).named("pairs");
    const weight = (name: string, ...shape: readonly number[]): TensorView => f.input(shape, DTYPE).named(name);
    const [normIn, shiftIn] = [weight("norm_in", C), weight("shift_in", C)];
    const [wIn, gateIn] = [weight("w_in", 2 * C, C), weight("gate_in", 2 * C, C)];
    const [normOut, shiftOut] = [weight("norm_out", C), weight("shift_out", C)];
    const [wOut, gateOut] = [weight("w_out", C, C), weight("gate_out", C, C)];
    const mesh = DeviceMesh.range(devices);
    for (const tensor of f.inputs) tensor.setDeviceMesh(mesh);
    pairs.outerSplit(0, devices).parallelize("DIDx");

    const gated = (x: TensorView, w: TensorView, from: TensorView, gate: TensorView): TensorView =>
      mul(linear(x, w), sigmoid(linear(from, gate)));
    const normed = layerNorm(pairs, normIn, shiftIn);
    const edges = permute(gated(normed, wIn, normed, gateIn), [2, 0, 1]);
    const [a, b] = split(edges, [C, C], 0);
    const turned = (x: TensorView): TensorView => permute(x, [0, 2, 1]);
    // Of the pair i j over the third corner k: the edges i k and j k, or k i and k j.
    const product = INCOMING ? matmul(turned(a), b) : matmul(a, turned(b));
    const corners = permute(product, [1, 2, 0]).named("corners");
    const out = gated(layerNorm(corners, normOut, shiftOut), wOut, normed, gateOut).named("out");
    product.setDeviceMesh(mesh).outerSplit(0, S).parallelize("Stream");
    product.outerSplit(2, devices).parallelize("DIDx");
    f.output(out);
    return f;
  },
);
