/**
 * A step of decoding with a Llama block: one token for each of B sequences, whose earlier keys and values are in caches
 * of T positions. Each sequence is at its own position: the step writes its key and value there, and the token attends
 * to the positions up to it. The angles of the positions are computed once for all layers. Tensor parallel: each device
 * has some of the groups of heads, their caches, and a part of the hidden features, so that the step sends two sums of B
 * rows.
 *
 *   npx braid run examples/transformer/llama-decode.ts --check
 *
 * The new caches are written over the old ones (`alias`), so that a step moves one row of each: later runs of an
 * executor pass null for the caches and weights, which stay where they are. A position past the end ends the run.
 */
import {
  add,
  cast,
  cos,
  DeviceMesh,
  dynamicUpdate,
  exp,
  Fusion,
  iota,
  linear,
  mul,
  program,
  reshape,
  rmsNorm,
  rope,
  sdpa,
  sin,
  slice,
  swiglu,
  type TensorView,
  unsqueeze,
} from "@braid-compiler/braid";

export default program(
  { B: 4, T: 16, H: 32, HEADS: 8, GROUPS: 4, FFN: 64, DTYPE: "float" },
  ({ devices, params: { B, T, H, HEADS, GROUPS, FFN, DTYPE } }) => {
    const f = new Fusion();
    const D = H / HEADS;
    const R = HEADS / GROUPS;
    const x = f.input([B, H], DTYPE).named("x");
    const position = f.input([B], "int64").named("position");
    const [cosines, sines] = [f.input([B, D / 2], "float"), f.input([B, D / 2], "float")];
    const [keys, values] = [f.input([B, GROUPS, 1, T, D], DTYPE), f.input([B, GROUPS, 1, T, D], DTYPE)];
    const norm1 = f.input([H], DTYPE).named("norm1");
    // Ordered by group: its query heads, then its key, then its value.
    const wQKV = f.input([GROUPS * (R + 2) * D, H], DTYPE).named("w_qkv");
    const wOut = f.input([H, HEADS * D], DTYPE).named("w_out");
    const norm2 = f.input([H], DTYPE).named("norm2");
    const wGate = f.input([FFN, H], DTYPE).named("w_gate");
    const wUp = f.input([FFN, H], DTYPE).named("w_up");
    const wDown = f.input([H, FFN], DTYPE).named("w_down");

    const mesh = DeviceMesh.range(devices);
    for (const tensor of f.inputs) tensor.setDeviceMesh(mesh);
    for (const rows of [wQKV, wGate, wUp]) rows.outerSplit(0, devices).parallelize("DIDx");
    for (const columns of [wOut, wDown]) columns.outerSplit(1, devices).parallelize("DIDx");
    for (const cache of [keys.named("keys"), values.named("values")]) cache.outerSplit(1, devices).parallelize("DIDx");

    const heads = reshape(linear(rmsNorm(x, norm1), wQKV), [B, GROUPS, R + 2, 1, D]);
    const part = (from: number, to: number): TensorView => slice(heads, [0, 0, from, 0, 0], [B, GROUPS, to, 1, D]);
    const at = reshape(position, [B, 1, 1, 1, 1]);
    const turn = (each: TensorView): TensorView => reshape(each, [B, 1, 1, 1, D / 2]);
    const [c, s] = [turn(cosines.named("cos")), turn(sines.named("sin"))];
    const newKeys = dynamicUpdate(keys, 3, at, rope(part(R, R + 1), c, s)).named("keys.next");
    const newValues = dynamicUpdate(values, 3, at, part(R + 1, R + 2)).named("values.next");
    const seen = sdpa(rope(part(0, R), c, s), newKeys, newValues, { keyLengths: add(position, 1) }).output;
    const r = add(x, linear(reshape(seen, [B, HEADS * D]), wOut));
    const n = rmsNorm(r, norm2);
    const z = add(r, linear(swiglu(linear(n, wGate), linear(n, wUp)), wDown)).named("z");
    f.output(z);
    f.output(newKeys, { alias: keys });
    f.output(newValues, { alias: values });
    return f;
  },
);

/** The cosines and sines [B, D / 2] of the positions [B] times 10000^(-2 j / D). */
export function angles(f: Fusion, position: TensorView, D: number): readonly [TensorView, TensorView] {
  const frequency = exp(mul(cast(iota(f, D / 2), "float"), (-2 * Math.log(10000)) / D));
  const angle = mul(cast(unsqueeze(position, 1), "float"), unsqueeze(frequency, 0));
  return [cos(angle), sin(angle)];
}
