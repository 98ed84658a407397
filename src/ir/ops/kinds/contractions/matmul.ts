/**
 * torch.matmul: a [.., M, K] or [K], b [.., K, N] or [K] -> [.., M, N, rK]. An operand [K] drops M or N from the
 * output. Batch axes broadcast. A batch axis that is also contracted becomes a reduction axis at the same place in the
 * output.
 */
import { at } from "../../../../support/invariant.ts";
import type { AxisShape, Tensor } from "../../../domain.ts";
import { zipRight } from "../families.ts";
import type { Call } from "../../call.ts";
import type { Axes, AxisPair, OpRow } from "../../row.ts";
import { joinAxes, rejectJoin } from "../elementwise/binary.ts";
import {
  contract,
  contractedPair,
  contraction,
  type ContractionBase,
  operandAxes,
  partialAxes,
} from "./contraction.ts";

export interface MatmulOp extends ContractionBase {
  readonly kind: "Matmul";
}

export const matmulRow: OpRow<MatmulOp> = {
  ...contraction,
  operands: [2, 2],
  shape: (_, operands, place) => ({ axes: matmulAxes(at(operands, 0), at(operands, 1), place) }),
  respec: (op) => op,
  pairs: (_, operands, output) => matmulPairs(at(operands, 0), at(operands, 1), output),
  partial: (_, operands, output) => {
    const [a, b] = [at(operands, 0), at(operands, 1)];
    const batch = Math.max(a.length - 2, b.length - 2, 0);
    return partialAxes(output, batch + (a.length > 1 ? 1 : 0) + (b.length > 1 ? 1 : 0));
  },
  whole: (_, operands) => {
    const [a, b] = [at(operands, 0), at(operands, 1)];
    return [
      { operand: 0, axis: at(a, a.length - 1) },
      { operand: 1, axis: at(b, Math.max(b.length - 2, 0)) },
    ];
  },
};

function matmulAxes(a: Tensor, b: Tensor, place: Call): readonly AxisShape[] {
  const left = operandAxes(a, place);
  const right = operandAxes(b, place);
  const contracted = contract(a, at(left, left.length - 1), b, at(right, Math.max(right.length - 2, 0)), place);
  const leftBatch = left.slice(0, -2);
  const rightBatch = right.slice(0, -2);
  const count = Math.max(leftBatch.length, rightBatch.length);
  const batch = Array.from({ length: count }, (_, i): AxisShape => {
    const x = leftBatch[i - count + leftBatch.length];
    const y = rightBatch[i - count + rightBatch.length];
    if (x === undefined) return at(right, i);
    if (y === undefined) return x;
    return joinAxes(x, y) ?? rejectJoin(a, b, i, place);
  });
  const rows = left.length > 1 ? [at(left, left.length - 2)] : [];
  const columns = right.length > 1 ? [at(right, right.length - 1)] : [];
  return [...batch, ...rows, ...columns, contracted];
}

function matmulPairs(a: Axes, b: Axes, output: Axes): readonly AxisPair[] {
  const kept = output.at(-1)?.iterType === "reduction" ? output.slice(0, -1) : output;
  const hasM = a.length > 1;
  const hasN = b.length > 1;
  const rows = hasN ? kept.slice(0, -1) : kept;
  const batch = hasM ? rows.slice(0, -1) : rows;
  return [
    ...zipRight(0, a.slice(0, -1), hasM ? rows : []),
    ...contractedPair(0, a.at(-1), output),
    ...zipRight(1, hasN ? b.slice(0, -2) : [], batch),
    ...contractedPair(1, hasN ? b.at(-2) : b[0], output),
    ...zipRight(1, hasN ? b.slice(-1) : [], kept),
  ];
}
