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
 * torch.nn.functional.linear: x [.., K], weight [N, K], bias [N] -> [.., N]. A weight [K] takes a scalar bias and gives
 * [..]. The output keeps K as a trailing reduction axis. Throws `shape-mismatch`, `dtype-mismatch`, `foreign-tensor`,
 * `bad-argument`.
 */
export function linear(x: TensorView, weight: TensorView, bias?: TensorView): TensorView {
  const operands = bias === undefined ? [x, weight] : [x, weight, bias];
  return apply({ kind: "Linear" }, operands, callOf("linear", operands));
}
