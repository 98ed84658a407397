/**
 * Attention as ops, for back ends without a kernel for it, for masks that kernels do not take, and for dropout, which no
 * library's kernel counts as Braid does. The scores of Lq x Lk are tensors. 16-bit floats are computed in float.
 */
import type { DType } from "../../../../numerics/dtype.ts";
import { at } from "../../../../support/invariant.ts";
import { isUnitAxis, withoutReductions } from "../../../domain.ts";
import { call } from "../../../ops/call.ts";
import { type CausalMask, isBias } from "../../../ops/kinds/attention/attention.ts";
import { fullSpec } from "../../../ops/kinds/creation.ts";
import { constantValue, foldSub } from "../../../scalar/fold.ts";
import { constant } from "../../../scalar/scalar.ts";
import { internals } from "../../handle.ts";
import type { TensorView } from "../../tensor-view.ts";
import { applyIn } from "../apply.ts";
import { eq, ge, gt, logicalAnd, lt, where } from "../choices.ts";
import { matmul } from "../contractions.ts";
import { add, div, mul, sub } from "../elementwise.ts";
import { exp, log, rsqrt, tanh } from "../functions.ts";
import { amax, sum } from "../reductions.ts";
import { broadcast, permute } from "../views.ts";
import { alignRight, indicesAlong, inDType, keepAxes, wide } from "./compose.ts";

export interface AttentionAttributes {
  readonly causal: CausalMask | null;
  /** Null for all keys. */
  readonly window: number | null;
  /** Null for 1 / sqrt(d). */
  readonly scale: number | null;
  /** Those of the op have none of these (api/ops/attention.ts). */
  readonly mask?: TensorView;
  readonly keyLengths?: TensorView;
  readonly softCap?: number;
}

/** A mask as what is added to the scores. */
export function addedMask(mask: TensorView, dtype: DType): TensorView {
  return inDType(mask.dtype === "bool" ? where(mask, 0, -Infinity) : mask, dtype);
}

/** The operand that may follow q, k and v, by its name. */
export function furtherOperand(
  operand: TensorView | undefined,
  q: TensorView,
): Pick<AttentionAttributes, "mask" | "keyLengths"> {
  if (operand === undefined) return {};
  return isBias(operand.extents, q.extents) ? { mask: operand } : { keyLengths: operand };
}

export interface AttentionResults {
  readonly output: TensorView;
  readonly logsumexp: TensorView;
}

/** softmax(scale q k^T) v. `drop` changes the probabilities. */
export function attentionOps(
  [q, k, v]: readonly [TensorView, TensorView, TensorView],
  attributes: AttentionAttributes,
  drop: (probabilities: TensorView) => TensorView = (x) => x,
): AttentionResults {
  const scores = maskedScores(q, k, attributes);
  const last = [scores.rank - 1];
  const most = amax(scores, last);
  // A row that sees no key has no finite score.
  const finite = where(eq(most, -Infinity), 0, most);
  const powers = exp(sub(scores, keepAxes(finite, last, scores)));
  const total = sum(powers, last);
  const sums = matmul(drop(powers), wide(v));
  const divisor = keepAxes(where(eq(total, 0), 1, total), last, sums);
  return { output: inDType(div(sums, divisor), q.dtype), logsumexp: add(finite, log(total)) };
}

/** The gradients of q, k and v, for the cotangent `g` of the output. */
export function attentionGradientOps(
  g: TensorView,
  [q, k, v]: readonly [TensorView, TensorView, TensorView],
  { output, logsumexp }: AttentionResults,
  attributes: AttentionAttributes,
): { readonly dq: TensorView; readonly dk: TensorView; readonly dv: TensorView } {
  const { p, dScores } = scoreGradients(g, [q, k, v], { output, logsumexp }, attributes);
  const ds = scaled(dScores, q, attributes);
  return {
    dq: inDType(matmul(ds, wide(k)), q.dtype),
    dk: inDType(sumAlong(matmul(transposed(ds), wide(q)), k), k.dtype),
    dv: inDType(sumAlong(matmul(transposed(p), wide(g)), v), v.dtype),
  };
}

/** The gradient of the mask that is added to the scores. */
export function biasGradientOps(
  g: TensorView,
  heads: readonly [TensorView, TensorView, TensorView],
  results: AttentionResults,
  attributes: AttentionAttributes & { readonly mask: TensorView },
): TensorView {
  const { dScores } = scoreGradients(g, heads, results, attributes);
  return inDType(sumAlong(dScores, attributes.mask), attributes.mask.dtype);
}

/** The probabilities, and the gradients of the scores that are masked. */
function scoreGradients(
  g: TensorView,
  [q, k, v]: readonly [TensorView, TensorView, TensorView],
  { output, logsumexp }: AttentionResults,
  attributes: AttentionAttributes,
): { readonly p: TensorView; readonly dScores: TensorView } {
  const scores = maskedScores(q, k, attributes);
  const last = [scores.rank - 1];
  const shift = where(eq(logsumexp, -Infinity), 0, logsumexp);
  const p = exp(sub(scores, keepAxes(shift, last, scores)));
  const products = sum(mul(wide(g), wide(output)), last);
  return { p, dScores: mul(p, sub(matmul(wide(g), transposed(wide(v))), keepAxes(products, last, p))) };
}

/** scale q k^T, and -Infinity for keys that a row does not see. */
function maskedScores(q: TensorView, k: TensorView, attributes: AttentionAttributes): TensorView {
  const { mask, softCap } = attributes;
  const plain = scaled(matmul(wide(q), transposed(wide(k))), q, attributes);
  const scores = softCap === undefined ? plain : mul(tanh(div(plain, softCap)), softCap);
  const isBool = mask?.dtype === "bool";
  const aligned = mask === undefined ? null : alignRight(mask, scores);
  const biased = aligned === null || isBool ? scores : add(scores, inDType(aligned, scores.dtype));
  const seen = [...positionsSeen(q, k, scores, attributes), ...(aligned !== null && isBool ? [aligned] : [])];
  return seen.length === 0 ? biased : where(seen.reduce(logicalAnd), biased, -Infinity);
}

/** Which keys a row sees by their positions, as bools that stretch to the scores. */
function positionsSeen(
  q: TensorView,
  k: TensorView,
  scores: TensorView,
  { causal, keyLengths, window }: AttentionAttributes,
): readonly TensorView[] {
  const place = call("sdpa");
  const [rows, columns] = [scores.rank - 2, scores.rank - 1];
  const [queries, length] = [at(q.extents, q.rank - 2), at(k.extents, k.rank - 2)];
  const keys = (): TensorView => indicesAlong(scores, columns, place, length);
  const ends = keyLengths && inDType(alignLeft(keyLengths, scores.rank), "int64");
  const last = (): TensorView => {
    if (causal === "topLeft") return indicesAlong(scores, rows, place, queries);
    if (ends === undefined) return indicesAlong(scores, rows, place, queries, foldSub(length, queries));
    return add(indicesAlong(scores, rows, place, queries, foldSub(constant(0), queries)), ends);
  };
  return [
    ...(causal === null ? [] : [ge(last(), keys())]),
    ...(window === null ? [] : [gt(keys(), sub(last(), window))]),
    // The last query sees as many keys as there are.
    ...(ends === undefined || causal === "bottomRight" ? [] : [lt(keys(), ends)]),
  ];
}

/** With axes of extent 1 behind its own, up to `rank`. */
export function alignLeft(tensor: TensorView, rank: number): TensorView {
  if (tensor.rank === rank) return tensor;
  return broadcast(
    tensor,
    Array.from({ length: rank }, (_, axis) => axis >= tensor.rank),
  );
}

function scaled(x: TensorView, q: TensorView, { scale }: AttentionAttributes): TensorView {
  if (scale !== null) return mul(x, scale);
  const size = at(q.extents, q.rank - 1);
  const known = constantValue(size);
  if (known !== null) return mul(x, 1 / Math.sqrt(known));
  const { builder } = q[internals];
  const place = call("sdpa");
  const ones = applyIn(builder, fullSpec([size], 1, x.dtype, place), [], place);
  return mul(x, rsqrt(sum(ones, [0])));
}

/** The sum over the axes along which `like` is stretched: heads of queries that share a head of it. */
function sumAlong(x: TensorView, like: TensorView): TensorView {
  const [own, wanted] = [x, like].map((tensor) => withoutReductions(tensor.data().domain.logical).map(isUnitAxis));
  const shared = [...x.extents.keys()].filter((axis) => own?.[axis] === false && wanted?.[axis] === true);
  return shared.length === 0 ? x : keepAxes(sum(x, shared), shared, x);
}

/** Swaps the last two axes. */
export function transposed(x: TensorView): TensorView {
  const { rank } = x;
  return permute(x, [...Array.from({ length: rank - 2 }, (_, axis) => axis), rank - 1, rank - 2]);
}
