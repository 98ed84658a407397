/**
 * A GPT block, forward and backward: layerNorm, causal attention and an MLP with gelu, each with dropout and a residual.
 * Tensor parallel: each device has some of the heads and a part of the hidden features. With sequence parallelism (SP=1)
 * the tokens are spread over the devices outside of the linears. The
 * forward pass runs in S chunks: of sequences or, with TOKENS=1, of the tokens of each sequence, which also works for one
 * sequence; attention then waits for all chunks.
 *
 *   npx braid run examples/transformer/gpt-block.ts --check
 */
import {
  add,
  DeviceMesh,
  dropout,
  Fusion,
  gelu,
  gradients,
  layerNorm,
  linear,
  permute,
  program,
  reshape,
  sdpa,
  split,
} from "@braid-compiler/braid";

export default program(
  { S: 2, B: 2, L: 16, H: 32, HEADS: 8, FFN: 64, DROPOUT: 0.1, DTYPE: "float", SP: 1, TOKENS: 0, BACKWARD: 1 },
  ({ devices, params: { S, B, L, H, HEADS, FFN, DROPOUT, DTYPE, SP, TOKENS, BACKWARD } }) => {
    const f = new Fusion();
    const D = H / HEADS;
    const x = f.input([B, L, H], DTYPE).named("x");
    const [norm1, shift1] = [f.input([H], DTYPE).named("norm1"), f.input([H], DTYPE).named("shift1")];
    // Ordered by head: its q, its k, its v.
    const [wQKV, bQKV] = [f.input([3 * H, H], DTYPE).named("w_qkv"), f.input([3 * H], DTYPE).named("b_qkv")];
    const [wOut, bOut] = [f.input([H, H], DTYPE).named("w_out"), f.input([H], DTYPE).named("b_out")];
    const [norm2, shift2] = [f.input([H], DTYPE).named("norm2"), f.input([H], DTYPE).named("shift2")];
    const [wUp, bUp] = [f.input([FFN, H], DTYPE).named("w_up"), f.input([FFN], DTYPE).named("b_up")];
    const [wDown, bDown] = [f.input([H, FFN], DTYPE).named("w_down"), f.input([H], DTYPE).named("b_down")];
    const parameters = [...f.inputs];
    const seed = f.input([], "int64").named("seed");
    const dz = BACKWARD ? f.input([B, L, H], DTYPE).named("dz") : null;

    const mesh = DeviceMesh.range(devices);
    for (const tensor of f.inputs) tensor.setDeviceMesh(mesh);
    for (const rows of [wQKV, bQKV, wUp, bUp]) rows.outerSplit(0, devices).parallelize("DIDx");
    for (const columns of [wOut, wDown]) columns.outerSplit(1, devices).parallelize("DIDx");
    for (const tokens of SP ? [x, dz] : []) {
      if (TOKENS) tokens?.outerSplit(1, S);
      tokens?.outerSplit(1 + TOKENS, devices).parallelize("DIDx");
    }

    const heads = reshape(linear(layerNorm(x, norm1, shift1), wQKV, bQKV), [B, L, HEADS, 3 * D]);
    const [q, k, v] = split(permute(heads, [0, 2, 1, 3]), [D, D, D], -1);
    const mixed = reshape(permute(sdpa(q, k, v, { causal: "topLeft" }).output, [0, 2, 1, 3]), [B, L, H]);
    const r = add(x, dropout(linear(mixed, wOut, bOut), DROPOUT, seed));
    const hidden = gelu(linear(layerNorm(r, norm2, shift2), wUp, bUp), "tanh");
    const z = add(r, dropout(linear(hidden, wDown, bDown), DROPOUT, seed)).named("z");
    z.outerSplit(TOKENS, S).parallelize("Stream");
    f.output(z);
    if (dz !== null) {
      const found = gradients(f, { of: [z], cotangents: [dz], wrt: parameters });
      for (const gradient of found) if (gradient !== null) f.output(gradient);
    }
    return f;
  },
);
