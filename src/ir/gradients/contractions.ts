/**
 * The rules of matmul and linear. Batch and row axes along which an operand is stretched are merged into the
 * contraction, instead of a sum over the results of a batch. The sums of 16-bit operands accumulate in float32, as in
 * any contraction, and round once.
 */
import { broadcast, matmul, mul, permute, reshape, unsqueeze } from "../api/ops.ts";
import type { TensorView } from "../api/tensor-view.ts";
import type { LinearOp, MatmulOp } from "../ops/op.ts";
import { foldProduct } from "../scalar/fold.ts";
import { at } from "../../support/invariant.ts";
import { isStretched, sumTo } from "./shapes.ts";
import type { Vjp } from "./vjp.ts";

/** y[.., N] = x[.., K] w[N, K] + b[N]; without N if w is [K]. */
export const linearVjp: Vjp<LinearOp> = (_, { g, operands }) => {
  const [x, weight] = [at(operands, 0), at(operands, 1)];
  const cotangents = [() => linearInput(g, weight), () => linearWeight(g, x, weight)];
  if (operands.length === 2) return cotangents;
  return [...cotangents, () => sumTo(g, at(operands, 2))];
};

function linearInput(g: TensorView, weight: TensorView): TensorView {
  if (weight.rank === 2) return matmul(g, weight);
  const flags = Array.from({ length: g.rank + 1 }, (_, axis) => axis < g.rank);
  return mul(unsqueeze(g, -1), broadcast(weight, flags));
}

function linearWeight(g: TensorView, x: TensorView, weight: TensorView): TensorView {
  const hasN = weight.rank === 2;
  if (x.rank === 1) return hasN ? mul(unsqueeze(g, 1), unsqueeze(x, 0)) : mul(x, g);
  return hasN ? matmul(transposed(rowsOf(g)), rowsOf(x)) : matmul(reshape(g, [foldProduct(g.extents)]), rowsOf(x));
}

/** y[.., M, N] = a[.., M, K] b[.., K, N]. An operand of one axis is taken as one row or column. */
export const matmulVjp: Vjp<MatmulOp> = (_, { g, operands }) => {
  const [first, second] = [at(operands, 0), at(operands, 1)];
  const [isRow, isColumn] = [first.rank === 1, second.rank === 1];
  const a = (): TensorView => (isRow ? unsqueeze(first, 0) : first);
  const b = (): TensorView => (isColumn ? unsqueeze(second, 1) : second);
  const whole = (): TensorView => {
    const rows = isRow ? unsqueeze(g, isColumn ? -1 : -2) : g;
    return isColumn ? unsqueeze(rows, -1) : rows;
  };
  return [
    () => asVector(leftOperand(whole(), a(), b()), isRow, 0),
    () => asVector(rightOperand(whole(), a(), b()), isColumn, 1),
  ];
};

function asVector(x: TensorView, isVector: boolean, axis: 0 | 1): TensorView {
  return isVector ? reshape(x, [at(x.extents, 1 - axis)]) : x;
}

/** g b^T */
function leftOperand(g: TensorView, a: TensorView, b: TensorView): TensorView {
  const batch = g.rank - 2;
  if (!isMergeable(g, a, b)) return sumTo(matmul(g, transposed(b)), a);
  const outermost = [batch, ...Array.from({ length: batch }, (_, axis) => axis), batch + 1];
  const columns = permute(g, outermost);
  const merged = reshape(columns, [at(g.extents, batch), foldProduct(columns.extents.slice(1))]);
  return inBatch(matmul(merged, rowsOf(transposed(b))), a);
}

/** a^T g */
function rightOperand(g: TensorView, a: TensorView, b: TensorView): TensorView {
  if (!isMergeable(g, b, a)) return sumTo(matmul(transposed(a), g), b);
  return inBatch(matmul(transposed(rowsOf(a)), rowsOf(g)), b);
}

/** Whether `operand` is the same for the whole batch, and the other operand has every batch axis. */
function isMergeable(g: TensorView, operand: TensorView, other: TensorView): boolean {
  const batch = g.rank - 2;
  return batch > 0 && other.rank === g.rank && isStretched(operand, operand.rank - 2);
}

/** Adds the batch axes of extent 1 that `operand` has. */
function inBatch(x: TensorView, { rank }: TensorView): TensorView {
  if (rank === 2) return x;
  return broadcast(
    x,
    Array.from({ length: rank }, (_, axis) => axis < rank - 2),
  );
}

/** [.., K] as [R, K]. */
function rowsOf(x: TensorView): TensorView {
  if (x.rank === 2) return x;
  return reshape(x, [foldProduct(x.extents.slice(0, -1)), at(x.extents, x.rank - 1)]);
}

/** Swaps the last two axes. */
function transposed(x: TensorView): TensorView {
  const { rank } = x;
  return permute(x, [...Array.from({ length: rank - 2 }, (_, axis) => axis), rank - 1, rank - 2]);
}
