/** Products that contract an axis. */
import type { DType } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import { scaledBlock } from "../../ops/kinds/contractions.ts";
import { constantValue } from "../../scalar/fold.ts";
import { requireDType } from "../fusion.ts";
import type { TensorView } from "../tensor-view.ts";
import { apply, callOf } from "./apply.ts";
import { add, cast } from "./elementwise.ts";
import { broadcast, permute, squeeze } from "./views.ts";

/**
 * torch.matmul: [.., M, K] x [.., K, N] -> [.., M, N]. Either operand may be [K]; its axis M or N is then absent.
 * Leading axes broadcast, also if one operand lacks them. The output keeps K as a trailing reduction axis. `dtype`, of
 * half and bfloat16: float, in which they are summed; that of the operands if omitted.
 * Throws `shape-mismatch`, `dtype-mismatch`, `foreign-tensor`, `bad-argument`.
 */
export function matmul(a: TensorView, b: TensorView, { dtype }: MatmulOptions = {}): TensorView {
  const to = dtype === undefined || dtype === a.dtype ? {} : { to: dtype };
  return apply({ kind: "Matmul", ...to }, [a, b], callOf("matmul", [a, b]));
}

export interface MatmulOptions {
  readonly dtype?: DType;
}

/**
 * torch._grouped_mm: x [.., M, K] with rows sorted by group, w [.., E, K, N], ends [.., E] -> [.., M, N]. `ends[e]` is
 * the number of rows up to the last one of group e; rows past the last end are 0. Ends that fall, or are past M, end
 * the run with a message.
 *
 * With rows y [.., M, N] in place of matrices it is x^T y of each group, [.., E, K, N]: the gradient of w.
 *
 * Leading axes broadcast and have ends of their own. To place experts on devices, give them a leading axis: x
 * [E, C, K], w [E, 1, K, N] and counts [E, 1] are E buffers of C rows, of which the first ones are used.
 * Throws `shape-mismatch`, `dtype-mismatch`, `foreign-tensor`.
 */
export function groupedMatmul(x: TensorView, w: TensorView, ends: TensorView): TensorView {
  return apply({ kind: "GroupedMatmul" }, [x, w, ends], callOf("groupedMatmul", [x, w, ends]));
}

/**
 * torch.nn.functional.linear: x [.., K], weight [N, K], bias [N] -> [.., N]. A weight [K] takes a scalar bias and gives
 * [..]. The output keeps K as a trailing reduction axis. Throws `shape-mismatch`, `dtype-mismatch`, `foreign-tensor`,
 * `bad-argument`.
 */
export function linear(x: TensorView, weight: TensorView, bias?: TensorView): TensorView {
  const operands = bias === undefined ? [x, weight] : [x, weight, bias];
  return apply({ kind: "Linear" }, operands, callOf("linear", operands));
}

export interface ScaledOptions {
  readonly bias?: TensorView;
  /** Of the result: bfloat16, half or float. */
  readonly dtype?: DType;
  /** use_fast_accum of torch._scaled_mm: tensor cores of Hopper may keep sums in about 14 bits. */
  readonly fastAccumulation?: boolean;
}

/**
 * torch._scaled_mm: x [.., M, K] and w [K, N] of floats of 8 bits, and a float scale of each -> [.., M, N]. A scale has
 * no axes, or one element per row of x, [.., M, 1], and per column of w, [1, N], which `quantize` gives. Sums are in
 * float, and are multiplied by both scales and rounded to `dtype`. A bias [N] is added after that. K is a multiple of 16.
 *
 * Or both have a scale for each block of 128 elements of K, a multiple of 128: [.., M, K/128] of x, and of w [K/128, N] or,
 * for blocks of 128 x 128, [K/128, N/128], rounded up. Sums of blocks are then never kept in fewer bits.
 * Throws `shape-mismatch`, `dtype-mismatch`, `foreign-tensor`, `bad-argument`.
 */
export function scaledMatmul(
  x: TensorView,
  w: TensorView,
  scaleX: TensorView,
  scaleW: TensorView,
  options: ScaledOptions = {},
): TensorView {
  callOf("scaledMatmul", [x, w, scaleX, scaleW]);
  return scaledLinear(x, permute(w, [1, 0]), scaleX, scaleW.rank === 2 ? permute(scaleW, [1, 0]) : scaleW, options);
}

/**
 * `scaledMatmul` with w and its scales transposed. The weight is [N, K], and its scales are [N, 1] or [N], or of blocks
 * [N, K/128] or [N/128, K/128]. With weights [B, N, K] the first axes of x are B: each of their indices has its own weight
 * and scales, [B, N, 1] or [B, N], or one of a tensor, [B].
 */
export function scaledLinear(
  x: TensorView,
  weight: TensorView,
  scaleX: TensorView,
  scaleW: TensorView,
  { bias, dtype = "bfloat16", fastAccumulation = false }: ScaledOptions = {},
): TensorView {
  const place = callOf("scaledLinear", [x, weight, scaleX, scaleW]);
  requireDType(dtype, place);
  const operands = [x, weight];
  const given = [scaleX, scaleW];
  // A scale per row may have K as an axis of extent 1. Where the other has one block of K, so has this.
  const inBlocks = given.some((scale, i) => isOfBlocks(scale, at(operands, i)));
  const scales = given.map((scale, i) =>
    inBlocks || scale.rank !== at(operands, i).rank ? scale : squeeze(scale, [scale.rank - 1]),
  );
  const isFast = fastAccumulation && !inBlocks;
  const op = { kind: "Linear", to: dtype, ...(isFast ? { fastAccumulation: isFast } : {}) } as const;
  const y = apply(op, [x, weight, ...scales], place);
  if (bias === undefined) return y;
  const flags = Array.from({ length: y.rank }, (_, axis) => axis < y.rank - 1);
  return add(y, broadcast(cast(bias, dtype), flags));
}

/** A scale [.., 1] is of rows, unless it is of fewer: then the only block of K has blocks of rows. */
function isOfBlocks(scale: TensorView, operand: TensorView): boolean {
  if (scale.rank === 0 || scale.rank !== operand.rank) return false;
  const [ofRows, rows, ofK] = [scale.extents.at(-2), operand.extents.at(-2), scale.extents.at(-1)].map((extent) =>
    extent === undefined ? null : constantValue(extent),
  );
  return ofK !== 1 || (typeof rows === "number" && ofRows !== rows && ofRows === Math.ceil(rows / scaledBlock));
}
