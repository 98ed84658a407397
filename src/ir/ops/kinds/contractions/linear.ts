/**
 * torch.nn.functional.linear: x [.., K], weight [N, K] or [K], bias [N] or [] -> [.., N, rK]. With a weight [K] the
 * output has no N.
 */
import { at } from "../../../../support/invariant.ts";
import { type AxisShape, type Tensor, withoutReductions } from "../../../domain.ts";
import { extentsDiffer } from "../../../scalar/fold.ts";
import { zip, zipRight } from "../families.ts";
import { type Call, reject, shapeText } from "../../call.ts";
import type { Axes, AxisPair, OpRow } from "../../row.ts";
import {
  contract,
  contractedPair,
  contraction,
  type ContractionBase,
  operandAxes,
  partialAxes,
} from "./contraction.ts";

export interface LinearOp extends ContractionBase {
  readonly kind: "Linear";
}

export const linearRow: OpRow<LinearOp> = {
  ...contraction,
  operands: [2, 3],
  shape: (_, operands, place) => ({
    axes: linearAxes(at(operands, 0), at(operands, 1), operands[2] ?? null, place),
  }),
  respec: (op) => op,
  pairs: (_, operands, output) => linearPairs(at(operands, 0), at(operands, 1), operands[2] ?? [], output),
  partial: (_, operands, output) =>
    partialAxes(output, Math.max(at(operands, 0).length - 1, 0) + at(operands, 1).length - 1),
  whole: (_, operands) =>
    [at(operands, 0), at(operands, 1)].map((axes, operand) => ({ operand, axis: at(axes, axes.length - 1) })),
};

function linearAxes(x: Tensor, weight: Tensor, bias: Tensor | null, place: Call): readonly AxisShape[] {
  const rows = operandAxes(x, place);
  const columns = operandAxes(weight, place);
  if (columns.length > 2) {
    reject(place, {
      code: "shape-mismatch",
      message: "the weight of linear has too many axes",
      found: shapeText(weight),
      expected: "[N, K], or [K] for a single output feature",
      help: "use matmul() for batched weights",
    });
  }
  const contracted = contract(x, at(rows, rows.length - 1), weight, at(columns, columns.length - 1), place);
  const features = columns.slice(0, -1);
  if (bias !== null) requireBias(bias, weight, features, place);
  return [...rows.slice(0, -1), ...features, contracted];
}

function requireBias(bias: Tensor, weight: Tensor, features: Axes, place: Call): void {
  const axes = withoutReductions(bias.domain.logical);
  const fits =
    axes.length === features.length && axes.every((axis, i) => !extentsDiffer(axis.extent, at(features, i).extent));
  if (fits) return;
  reject(place, {
    code: "shape-mismatch",
    message: "the bias does not fit the weight",
    found: `${shapeText(bias)} for the weight ${shapeText(weight)}`,
    expected: "one axis [N], with the extent of the weight's first axis",
    help: "give the bias one element per output feature",
  });
}

function linearPairs(x: Axes, weight: Axes, bias: Axes, output: Axes): readonly AxisPair[] {
  const kept = withoutReductions(output);
  return [
    ...zip(0, x.slice(0, -1), kept),
    ...contractedPair(0, x.at(-1), output),
    ...zipRight(1, weight.slice(0, -1), kept),
    ...contractedPair(1, weight.at(-1), output),
    ...zipRight(2, bias, kept),
  ];
}
