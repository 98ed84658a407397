/** Products that contract an axis. */
import type { DType } from "../../../numerics/dtype.ts";
import { requireDType } from "../fusion.ts";
import type { TensorView } from "../tensor-view.ts";
import { apply, callOf } from "./apply.ts";
import { add, cast } from "./elementwise.ts";
import { broadcast, permute, squeeze } from "./views.ts";

/**
 * torch.matmul: [.., M, K] x [.., K, N] -> [.., M, N]. Either operand may be [K]; its axis M or N is then absent.
 * Leading axes broadcast, also if one operand lacks them. The output keeps K as a trailing reduction axis.
 * Throws `shape-mismatch`, `dtype-mismatch`, `foreign-tensor`, `bad-argument`.
 */
export function matmul(a: TensorView, b: TensorView): TensorView {
  return apply({ kind: "Matmul" }, [a, b], callOf("matmul", [a, b]));
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
 * `scaledMatmul` with a weight [N, K], whose scales are [N, 1] or [N]. With weights [B, N, K] the first axes of x are
 * B: each of their indices has its own weight and scales, [B, N, 1] or [B, N], or one of a tensor, [B].
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
  const bare = (scale: TensorView, { rank }: TensorView): TensorView =>
    scale.rank === rank ? squeeze(scale, [rank - 1]) : scale;
  const scales = [bare(scaleX, x), bare(scaleW, weight)];
  const op = { kind: "Linear", to: dtype, ...(fastAccumulation ? { fastAccumulation } : {}) } as const;
  const y = apply(op, [x, weight, ...scales], place);
  if (bias === undefined) return y;
  const flags = Array.from({ length: y.rank }, (_, axis) => axis < y.rank - 1);
  return add(y, broadcast(cast(bias, dtype), flags));
}
