/**
 * Causal self-attention as in DeepSpeed Ulysses, forward and backward. Outside of attention each device has a part of
 * the tokens, inside some of the heads: an AllToAll before and one after exchange the two. In S chunks of sequences, the
 * heads of one chunk are exchanged while attention to another one runs.
 *
 *   npx braid run examples/transformer/ulysses.ts --check
 *
 * On each device x and y are [B, L / devices, H], q, k and v [B, HEADS / devices, L, H / HEADS]. Weights are whole.
 */
import { DeviceMesh, Fusion, gradients, linear, permute, program, reshape, sdpa, split } from "@braid-compiler/braid";

export default program(
  { S: 2, B: 2, L: 16, H: 32, HEADS: 8, DTYPE: "float", BACKWARD: 1 },
  ({ devices, params: { S, B, L, H, HEADS, DTYPE, BACKWARD } }) => {
    const f = new Fusion();
    const D = H / HEADS;
    const x = f.input([B, L, H], DTYPE).named("x");
    const wQKV = f.input([3 * H, H], DTYPE).named("w_qkv");
    const wOut = f.input([H, H], DTYPE).named("w_out");
    const dy = BACKWARD ? f.input([B, L, H], DTYPE).named("dy") : null;
    const mesh = DeviceMesh.range(devices);
    for (const tensor of f.inputs) tensor.setDeviceMesh(mesh);
    for (const tokens of [x, dy]) tokens?.outerSplit(1, devices).parallelize("DIDx");

    // Ordered by head: its q, its k, its v.
    const qkv = permute(reshape(linear(x, wQKV), [B, L, HEADS, 3 * D]), [0, 2, 1, 3]).named("qkv");
    qkv.setDeviceMesh(mesh).outerSplit(1, devices).parallelize("DIDx");
    const [q, k, v] = split(qkv, [D, D, D], -1);
    const { output } = sdpa(q, k, v, { causal: "topLeft" });
    const mixed = reshape(permute(output, [0, 2, 1, 3]), [B, L, H]).named("mixed");
    mixed.setDeviceMesh(mesh).outerSplit(1, devices).parallelize("DIDx");
    const y = linear(mixed, wOut).named("y");
    for (const chunked of [qkv, mixed, y]) chunked.outerSplit(0, S).parallelize("Stream");
    f.output(y);
    if (dy !== null) {
      for (const each of gradients(f, { of: [y], cotangents: [dy], wrt: [x, wQKV, wOut] }))
        if (each !== null) f.output(each);
    }
    return f;
  },
);
