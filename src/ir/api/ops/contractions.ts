/** Products that contract an axis. */
import type { TensorView } from "../tensor-view.ts";
import { apply, callOf } from "./apply.ts";

/**
 * torch.matmul: [.., M, K] x [.., K, N] -> [.., M, N]. Either operand may be [K]; its axis M or N is then absent.
 * Leading axes broadcast, also if one operand lacks them. The output keeps K as a trailing reduction axis.
 * Throws `shape-mismatch`, `dtype-mismatch`, `foreign-tensor`, `bad-argument`.
 */
export function matmul(a: TensorView, b: TensorView): TensorView {
  return apply({ kind: "Matmul" }, [a, b], callOf("matmul", [a, b]));
}

/**
 * Rows of groups times matrices of their own, as torch._grouped_mm: x [.., M, K], whose rows are sorted by group,
 * w [.., E, K, N] and the ends of the groups [.., E] -> [.., M, N]. `ends[e]` is the number of rows up to the last one
 * of group e; rows past the last end are 0. Ends that fall, or are past M, end the run with a message.
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
