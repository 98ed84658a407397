/**
 * A Llama block, forward and backward: rmsNorm, rotary positions, attention in which groups of query heads share a key
 * and a value, and swiglu. Tensor parallel: each device has some of the groups and a part of the hidden features. With
 * sequence parallelism (SP=1) the tokens are spread over the devices outside of the linears. The
 * forward pass runs in S chunks: of sequences or, with TOKENS=1, of the tokens of each sequence, which also works for one
 * sequence; attention then waits for all chunks.
 *
 *   npx braid run examples/transformer/llama-block.ts --check
 */
import {
  add,
  cast,
  cos,
  DeviceMesh,
  exp,
  Fusion,
  gradients,
  iota,
  linear,
  mul,
  permute,
  program,
  reshape,
  rmsNorm,
  rope,
  sdpa,
  sin,
  split,
  swiglu,
  type TensorView,
  unsqueeze,
} from "@braid-compiler/braid";

export default program(
  { S: 2, B: 2, L: 16, H: 32, HEADS: 8, GROUPS: 4, FFN: 64, DTYPE: "float", SP: 1, TOKENS: 0, BACKWARD: 1 },
  ({ devices, params: { S, B, L, H, HEADS, GROUPS, FFN, DTYPE, SP, TOKENS, BACKWARD } }) => {
    const f = new Fusion();
    const D = H / HEADS;
    const R = HEADS / GROUPS;
    const x = f.input([B, L, H], DTYPE).named("x");
    const norm1 = f.input([H], DTYPE).named("norm1");
    // Ordered by group: its query heads, then its key, then its value.
    const wQKV = f.input([GROUPS * (R + 2) * D, H], DTYPE).named("w_qkv");
    const wOut = f.input([H, HEADS * D], DTYPE).named("w_out");
    const norm2 = f.input([H], DTYPE).named("norm2");
    const wGate = f.input([FFN, H], DTYPE).named("w_gate");
    const wUp = f.input([FFN, H], DTYPE).named("w_up");
    const wDown = f.input([H, FFN], DTYPE).named("w_down");
    const dz = BACKWARD ? f.input([B, L, H], DTYPE).named("dz") : null;

    const mesh = DeviceMesh.range(devices);
    for (const tensor of f.inputs) tensor.setDeviceMesh(mesh);
    for (const rows of [wQKV, wGate, wUp]) rows.outerSplit(0, devices).parallelize("DIDx");
    for (const columns of [wOut, wDown]) columns.outerSplit(1, devices).parallelize("DIDx");
    for (const tokens of SP ? [x, dz] : []) {
      if (TOKENS) tokens?.outerSplit(1, S);
      tokens?.outerSplit(1 + TOKENS, devices).parallelize("DIDx");
    }

    const groups = reshape(linear(rmsNorm(x, norm1), wQKV), [B, L, GROUPS, R + 2, D]);
    const [q, k, v] = split(permute(groups, [0, 2, 3, 1, 4]), [R, 1, 1], 2);
    const [c, s] = angles(f, L, D);
    const heads = sdpa(rope(q, c, s), rope(k, c, s), v, { causal: "topLeft" }).output;
    const r = add(x, linear(reshape(permute(heads, [0, 3, 1, 2, 4]), [B, L, HEADS * D]), wOut));
    const n = rmsNorm(r, norm2);
    const z = add(r, linear(swiglu(linear(n, wGate), linear(n, wUp)), wDown)).named("z");
    z.outerSplit(TOKENS, S).parallelize("Stream");
    f.output(z);
    if (dz !== null) {
      const wrt = [x, norm1, wQKV, wOut, norm2, wGate, wUp, wDown];
      const found = gradients(f, { of: [z], cotangents: [dz], wrt });
      for (const gradient of found) if (gradient !== null) f.output(gradient);
    }
    return f;
  },
);

/** The cosines and sines of position i times 10000^(-2 j / D), as [L, D / 2]. */
function angles(f: Fusion, L: number, D: number): readonly [TensorView, TensorView] {
  const [position, pair] = [cast(iota(f, L), "float"), cast(iota(f, D / 2), "float")];
  const frequency = exp(mul(pair, (-2 * Math.log(10000)) / D));
  const angle = mul(unsqueeze(position, 1), unsqueeze(frequency, 0));
  return [cos(angle), sin(angle)];
}
