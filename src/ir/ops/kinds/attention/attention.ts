/**
 * What attention forward and backward share. Queries are [.., Lq, d], keys [.., Lk, d], values [.., Lk, e]. Of the axes
 * in front, keys and values both have the extent of the queries, or both 1: several heads of queries then share a head
 * of keys and values (grouped queries).
 */
import { elementCount } from "../../../../numerics/tensor/host-tensor.ts";
import { accumulatorOf, type DType, dtypes } from "../../../../numerics/dtype.ts";
import { at } from "../../../../support/invariant.ts";
import { type AxisShape, isUnitAxis, type Tensor, withoutReductions } from "../../../domain.ts";
import { extentsDiffer } from "../../../scalar/fold.ts";
import { type Call, reject, shapeText } from "../../call.ts";
import { commonDType, requireFloat } from "../../dtype-rules.ts";
import { elementWork, type Axes, type KnownSizes, type OpBase, type Shapes } from "../../row.ts";
import type { Diagnostic } from "../../../../diagnostics/diagnostic.ts";

/**
 * Which keys query i of Lq sees. topLeft: keys 0 to i, as PyTorch's `is_causal`. bottomRight: keys 0 to i + Lk - Lq, so
 * that the last query sees all.
 */
export type CausalMask = "topLeft" | "bottomRight";

export interface AttentionBase extends OpBase {
  /** Null: every query sees all keys. */
  readonly causal: CausalMask | null;
  /** How many keys a query sees up to the last one that `causal` shows it: a sliding window. Null: all of them. */
  readonly window: number | null;
  /** The factor of the scores, as JavaScript writes it; null for 1 / sqrt(d). */
  readonly scale: string | null;
}

/** The axes of a query, key or value tensor in front of its matrices. */
export function leading(axes: Axes): Axes {
  return axes.slice(0, -2);
}

/** Whether several query heads share a head of keys and values along an axis in front. */
export function isSharedHeadAxis(axis: number, q: Axes, k: Axes): boolean {
  return !isUnitAxis(at(q, axis)) && isUnitAxis(at(k, axis));
}

export function scaleOf({ scale }: Pick<AttentionBase, "scale">, headSize: number): number {
  return scale === null ? 1 / Math.sqrt(headSize) : Number(scale);
}

/** Throws `dtype-mismatch`. */
export function attentionDType(name: string, operands: readonly Tensor[], place: Call): DType {
  const dtype = commonDType(null, operands, place);
  requireFloat(dtype, name, place);
  return dtype;
}

/** The dtype of logsumexp. */
export function statisticsDType(dtype: DType): DType {
  return accumulatorOf(dtype);
}

export function axesOf(tensor: Tensor): Axes {
  return withoutReductions(tensor.domain.logical);
}

/** Throws `shape-mismatch` unless the tensors are queries, keys and values of one attention. */
export function requireAttention(q: Tensor, k: Tensor, v: Tensor, place: Call): void {
  const [queries, keys, values] = [axesOf(q), axesOf(k), axesOf(v)];
  const count = queries.length;
  if (count < 2 || keys.length !== count || values.length !== count) {
    const message = "q, k and v have different numbers of axes, or fewer than two";
    rejectShapes([q, k, v], message, "add axes of extent 1 with unsqueeze()", place);
  }
  const fits = (axis: number, a: Axes, b: Axes): boolean => !extentsDiffer(at(a, axis).extent, at(b, axis).extent);
  if (!fits(count - 1, queries, keys)) {
    rejectShapes([q, k], "q and k have heads of different sizes", "project both to heads of one size", place);
  }
  if (!fits(count - 2, keys, values)) {
    rejectShapes([k, v], "k and v have different numbers of rows", "give every key one value", place);
  }
  const misfit = leading(queries).findIndex(
    (_, i) => !fits(i, keys, values) || (!isUnitAxis(at(keys, i)) && !fits(i, queries, keys)),
  );
  const help =
    "give each group of query heads that shares a head of keys an axis: q [B, G, r, L, d], k [B, G, 1, L, d]";
  if (misfit >= 0) rejectShapes([q, k, v], `q, k and v differ along axis ${misfit}`, help, place);
}

/**
 * Throws `dtype-mismatch`, or `shape-mismatch` unless there is one length for each head of `q`, or for several. With
 * `mayLack`, the last axes may be missing.
 */
export function requireKeyLengths(q: Tensor, keyLengths: Tensor, place: Call, mayLack = false): void {
  const [own, wanted] = [axesOf(keyLengths), leading(axesOf(q))];
  if (dtypes[keyLengths.dtype].family !== "integer") {
    reject(place, "dtype-mismatch", "the keyLengths of attention have another dtype", {
      found: keyLengths.dtype,
      expected: "integer",
      help: "convert it with cast",
    });
  }
  const hasAxes = own.length === wanted.length || (mayLack && own.length < wanted.length);
  if (hasAxes && own.every((axis, i) => isUnitAxis(axis) || !extentsDiffer(axis.extent, at(wanted, i).extent))) return;
  reject(place, "shape-mismatch", "the keyLengths of attention have other axes", {
    found: shapeText(keyLengths),
    expected: "the first axes of q, before Lq, or 1 along them",
    help: "add axes of extent 1 with unsqueeze",
  });
}

/** What follows q, k and v: a bias of the scores has as many axes as they, key lengths have those in front. */
export function isBias(operand: readonly unknown[], q: readonly unknown[]): boolean {
  return operand.length === q.length;
}

/** Throws `dtype-mismatch`, or `shape-mismatch` unless the tensor can be added to the scores [.., Lq, Lk]. */
export function requireBias(bias: Tensor, q: Tensor, k: Tensor, place: Call): void {
  const dtypesOfBias = [...new Set([q.dtype, statisticsDType(q.dtype)])];
  if (!dtypesOfBias.includes(bias.dtype)) {
    reject(place, "dtype-mismatch", "the mask of attention has another dtype", {
      found: bias.dtype,
      expected: dtypesOfBias.join(" or "),
      help: "convert it with cast",
    });
  }
  requireMaskAxes(bias, q, k, place);
}

/** Throws `shape-mismatch` unless a mask has the axes of the scores; with `mayLack`, the first axes may be missing. */
export function requireMaskAxes(mask: Tensor, q: Tensor, k: Tensor, place: Call, mayLack = false): void {
  const [own, scores] = [axesOf(mask), [...axesOf(q).slice(0, -1), at(axesOf(k), axesOf(k).length - 2)]];
  const lacking = scores.length - own.length;
  const fits = (axis: AxisShape, i: number): boolean =>
    isUnitAxis(axis) || !extentsDiffer(axis.extent, at(scores, lacking + i).extent);
  if ((mayLack ? lacking >= 0 : lacking === 0) && own.every(fits)) return;
  reject(place, "shape-mismatch", "the mask of attention has other axes", {
    found: shapeText(mask),
    expected: "the last axes of [.., Lq, Lk], or 1 along them",
    help: "add axes of extent 1 with unsqueeze",
  });
}

function rejectShapes(tensors: readonly Tensor[], message: string, help: string, place: Call): never {
  return reject(place, "shape-mismatch", message, {
    found: tensors.map(shapeText).join(", "),
    expected: "q [.., Lq, d], k [.., Lk, d], v [.., Lk, e], with equal axes in front, or extent 1 in k and v",
    help,
  });
}

/** The sizes that no output shows: of heads and of keys. Operands `q`, `k` and `v` are at these positions. */
export function attentionMisfit(
  { operands }: KnownSizes,
  positions: readonly [number, number, number],
): Omit<Diagnostic, "place"> | null {
  const shapes = operands();
  const [q = [], k = [], v = []] = positions.map((position) => at(shapes, position));
  if (q.at(-1) === k.at(-1) && k.at(-2) === v.at(-2)) return null;
  return {
    code: "size-mismatch",
    message: "q, k and v do not fit each other",
    found: [q, k, v].map((shape) => `[${shape.join(", ")}]`).join(", "),
    expected: "q [.., Lq, d], k [.., Lk, d], v [.., Lk, e]",
    help: "pass inputs whose shapes agree",
  };
}

/** Which keys the queries see. */
export type SeenKeys = Pick<AttentionBase, "causal" | "window">;

/** How many scores the rows see in all: of as many rows as keys, the triangle or the band of the mask. */
export function scoreCount({ causal, window }: SeenKeys, q: readonly number[], k: readonly number[]): number {
  const rows = elementCount(q.slice(0, -1));
  const keys = k.at(-2) ?? 1;
  if (causal === null || keys === 0) return rows * keys;
  const most = Math.min(window ?? keys, keys);
  return rows * most * (1 - most / (2 * keys));
}

/** An exponential, the largest score and a sum, in multiply-adds of the GEMM kernels. */
const exponentialWork = 64;

/** The work of `products` multiply-adds, the mask and the exponential of each score. */
export function scoreWork(scores: number, products: number): number {
  return scores * (products + exponentialWork + elementWork);
}

export function headSizes({ operands }: Shapes, q: number, v: number): { readonly d: number; readonly e: number } {
  return { d: at(operands, q).at(-1) ?? 1, e: at(operands, v).at(-1) ?? 1 };
}
