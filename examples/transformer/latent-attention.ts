/**
 * Multi-head latent attention (MLA), as before the experts of DeepSeek-V3: queries, and keys with values, come from
 * narrow latents, and all heads share the part of the keys that has positions. Tensor parallel: each device has some of
 * the heads. The tokens of x are spread over the devices, which compute their latents; the latents are gathered, in
 * place of x, and the output is scattered, in S chunks of sequences.
 *
 *   npx braid run examples/transformer/latent-attention.ts --check
 *
 * x and y are [B, L, H]; a latent of queries has Q features, one of keys and values KV. A head has D features, and R
 * more that are rotated.
 */
import {
  cast,
  cat,
  cos,
  DeviceMesh,
  type DType,
  exp,
  expand,
  Fusion,
  iota,
  linear,
  mul,
  permute,
  program,
  reshape,
  rmsNorm,
  rope,
  sdpa,
  set,
  sin,
  split,
  type TensorView,
  unsqueeze,
} from "@braid-compiler/braid";

export default program(
  { S: 2, B: 2, L: 16, H: 32, HEADS: 8, Q: 16, KV: 8, D: 4, R: 2, DTYPE: "float" },
  ({ devices, params: { S, DTYPE, ...sizes } }) => {
    const f = new Fusion();
    const x = f.input([sizes.B, sizes.L, sizes.H], DTYPE).named("x");
    const weights = latentWeights(f, sizes, DTYPE);
    const mesh = DeviceMesh.range(devices);
    for (const tensor of f.inputs) tensor.setDeviceMesh(mesh);
    x.outerSplit(1, devices).parallelize("DIDx");
    shareHeads(weights, devices);

    const { latents, y } = latentAttention(f, x, weights, sizes);
    for (const chunked of [latents, y]) chunked.setDeviceMesh(mesh).outerSplit(0, S).parallelize("Stream");
    y.outerSplit(2, devices).parallelize("DIDx");
    f.output(y);
    return f;
  },
);

export interface LatentSizes {
  readonly B: number;
  readonly L: number;
  readonly H: number;
  readonly HEADS: number;
  readonly Q: number;
  readonly KV: number;
  readonly D: number;
  readonly R: number;
}

type LatentWeights = Readonly<Record<"qDown" | "qNorm" | "qUp" | "kvDown" | "kvNorm" | "kvUp" | "wOut", TensorView>>;

export function latentWeights(f: Fusion, { H, HEADS, Q, KV, D, R }: LatentSizes, dtype: DType): LatentWeights {
  const weight = (name: string, ...shape: readonly number[]): TensorView => f.input(shape, dtype).named(name);
  const [qDown, qNorm, qUp] = [weight("q_down", Q, H), weight("q_norm", Q), weight("q_up", HEADS * (D + R), Q)];
  const [kvDown, kvNorm] = [weight("kv_down", KV + R, H), weight("kv_norm", KV)];
  const kvUp = weight("kv_up", HEADS * 2 * D, KV);
  return { qDown, qNorm, qUp, kvDown, kvNorm, kvUp, wOut: weight("w_out", H, HEADS * D) };
}

/** Each device has some of the heads. */
export function shareHeads({ qUp, kvUp, wOut }: LatentWeights, devices: number): void {
  for (const heads of [qUp, kvUp]) heads.outerSplit(0, devices).parallelize("DIDx");
  wOut.outerSplit(1, devices).parallelize("DIDx");
}

/** `latents`: of keys and values, with the rotated part of the keys, as they are gathered. y is a sum over heads. */
export function latentAttention(
  f: Fusion,
  x: TensorView,
  { qDown, qNorm, qUp, kvDown, kvNorm, kvUp, wOut }: LatentWeights,
  { B, L, HEADS, KV, D, R }: LatentSizes,
): { readonly latents: TensorView; readonly y: TensorView } {
  const [c, s] = angles(f, L, R);
  const byHead = (tensor: TensorView, size: number): TensorView =>
    permute(reshape(tensor, [B, L, HEADS, size]), [0, 2, 1, 3]);
  const [q, qTurned] = split(byHead(linear(rmsNorm(linear(x, qDown), qNorm), qUp), D + R), [D, R], -1);
  // One gather of both, before heads share the rotated part.
  const latents = set(linear(x, kvDown)).named("kv");
  const [latent, turned] = split(latents, [KV, R], -1);
  const [k, v] = split(byHead(linear(rmsNorm(latent, kvNorm), kvUp), 2 * D), [D, D], -1);
  const kTurned = expand(unsqueeze(rope(turned, c, s), 1), [B, HEADS, L, R]);
  const heads = sdpa(cat([q, rope(qTurned, c, s)], -1), cat([k, kTurned], -1), v, { causal: "topLeft" }).output;
  return { latents, y: linear(reshape(permute(heads, [0, 2, 1, 3]), [B, L, HEADS * D]), wOut).named("y") };
}

/** The cosines and sines of position i times 10000^(-2 j / D), as [L, D / 2]. */
function angles(f: Fusion, L: number, D: number): readonly [TensorView, TensorView] {
  const [position, pair] = [cast(iota(f, L), "float"), cast(iota(f, D / 2), "float")];
  const frequency = exp(mul(pair, (-2 * Math.log(10000)) / D));
  const angle = mul(unsqueeze(position, 1), unsqueeze(frequency, 0));
  return [cos(angle), sin(angle)];
}
