/**
 * Whether a computation fits its operands and its output: the rules of the Fusion API's ops, applied to ops that a program
 * already has. Symbolic extents are taken as equal.
 */
import { DiagnosticError } from "../diagnostics/diagnostic.ts";
import type { Call } from "../ir/call.ts";
import { shapeText } from "../ir/call.ts";
import { partialAxes } from "../ir/axis-map.ts";
import { type AxisShape, isDID, type Tensor, withoutReductions } from "../ir/domain.ts";
import { inferOutput, type OutputShape } from "../ir/infer-output.ts";
import {
  broadcastSpec,
  type OpSpec,
  permuteSpec,
  reductionSpec,
  reshapeSpec,
  sliceSpec,
  squeezeSpec,
} from "../ir/op-spec.ts";
import type { Op } from "../ir/ops.ts";
import { extentsDiffer } from "../ir/scalar-fold.ts";
import { printScalar } from "../ir/scalar-print.ts";
import { dispatch, type RuleTable } from "../support/dispatch.ts";
import { at } from "../support/invariant.ts";
import type { Fault } from "./fault.ts";

export function checkOp(op: Op, tensors: readonly Tensor[]): readonly Fault[] {
  const operands = op.inputs.map((id) => at(tensors, id));
  const output = at(tensors, op.output);
  const result = resultOf(op, operands, output);
  return "message" in result ? [result] : checkOutput(op, output, result, tensors);
}

/** What the op puts out, or why its arguments do not fit its operands. */
function resultOf(op: Op, operands: readonly Tensor[], output: Tensor): OutputShape | Fault {
  try {
    const spec = dispatch<Op, OpSpec, [Tensor, Tensor]>(specs, op, at(operands, 0), output);
    return inferOutput(spec, operands, place);
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    const { message, found = "", expected = "", help = "" } = at(error.diagnostics, 0);
    return { message, found, expected, help };
  }
}

/** A placeholder: findings name the statement. */
const place: Call = { kind: "call", text: "op" };

/** The op's arguments, checked as the API's calls check them. */
const specs: RuleTable<Op, OpSpec, [Tensor, Tensor]> = {
  Set: (op) => op,
  Unary: (op) => op,
  Cast: (op) => op,
  Binary: (op) => op,
  Reduction: ({ op, axes }, input) => reductionSpec(op, input, axes, place),
  Broadcast: ({ flags }, input) => broadcastSpec(input, flags, place),
  Squeeze: ({ axes }, input) => squeezeSpec(input, axes, place),
  Permute: ({ order }, input) => permuteSpec(input, order, place),
  Reshape: (_, input, output) => {
    const extents = withoutReductions(output.domain.logical).map(({ extent }) => extent);
    return reshapeSpec(input, extents, place);
  },
  Slice: ({ ranges }, input) => {
    const starts = ranges.map(({ start }) => start);
    const stops = ranges.map(({ stop }) => stop);
    return sliceSpec(input, starts, stops, place);
  },
  // The index may depend on loops: record checks it.
  Select: (op) => op,
  Matmul: (op) => op,
  Linear: (op) => op,
};

function checkOutput(
  op: Op,
  output: Tensor,
  { dtype, axes }: OutputShape,
  tensors: readonly Tensor[],
): readonly Fault[] {
  const { kind } = op;
  if (output.dtype !== dtype) {
    return [
      {
        message: `the output of ${kind} has another dtype than the op gives`,
        found: output.dtype,
        expected: dtype,
        help: "give the output the op's dtype, or convert with a Cast",
      },
    ];
  }
  const partial = partialAxes(op, tensors);
  const logical = output.domain.logical.filter((axis) => !partial.includes(axis));
  const fits =
    logical.length === axes.length &&
    partial.every(({ parallelType }) => isDID(parallelType)) &&
    // Where a reduction stops at what each device has, the extent that it prints is a device's share.
    logical.every((axis, i) => sameAxis(axis, at(axes, i), partial.length > 0));
  if (fits) return [];
  return [
    {
      message: `the output of ${kind} does not have the axes that the op gives`,
      found: `${shapeText(output)}${reducedText(logical)}`,
      expected: `[${withoutReduced(axes).join(", ")}]${reducedText(axes)}`,
      help: "give the output the op's axes, the reduced ones included",
    },
  ];
}

function sameAxis(own: AxisShape, given: AxisShape, isPartial: boolean): boolean {
  const isReduced = own.iterType === "reduction";
  if (isReduced !== (given.iterType === "reduction")) return false;
  return (isReduced && isPartial) || !extentsDiffer(own.extent, given.extent);
}

function withoutReduced(axes: readonly AxisShape[]): readonly string[] {
  return axes.filter(({ iterType }) => iterType !== "reduction").map(({ extent }) => printScalar(extent));
}

function reducedText(axes: readonly AxisShape[]): string {
  const count = axes.filter(({ iterType }) => iterType === "reduction").length;
  return count === 0 ? "" : ` and ${count} reduced ${count === 1 ? "axis" : "axes"}`;
}
