/** The axes of an op's operands as the op reads them: without reduced ones, and permuted where it reads a permute in place. */
import { at } from "../../support/invariant.ts";
import { type IterDomain, type Tensor, withoutReductions } from "../domain.ts";
import type { Op } from "./op.ts";

/** `orders[operand]` of a contraction that reads that operand permuted; else null. */
export function operandOrder(op: Op, operand: number): readonly number[] | null {
  return op.kind === "Matmul" || op.kind === "Linear" ? (op.orders?.[operand] ?? null) : null;
}

/** In the order in which the op counts them. `tensors` is indexed by TensorId. */
export function operandAxes(op: Op, operand: number, tensors: readonly Tensor[]): readonly IterDomain[] {
  const axes = withoutReductions(at(tensors, at(op.inputs, operand)).domain.logical);
  const order = operandOrder(op, operand);
  return order === null ? axes : order.map((axis) => at(axes, axis));
}
