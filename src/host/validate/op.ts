/**
 * Checks that an op of a program fits its operands and its output, by the rules of the Fusion API's ops. Symbolic
 * extents are assumed equal.
 */
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";
import { type Call, shapeText } from "../../ir/ops/call.ts";
import { operandOrder, partialAxes } from "../../ir/ops/axis-map.ts";
import { type AxisShape, isDID, type Tensor, withoutReductions } from "../../ir/domain.ts";
import { inferOutputs, type OutputShape, rowOf } from "../../ir/ops/rows.ts";
import { type LinearOp, type MatmulOp, type Op, outputsOf } from "../../ir/ops/op.ts";
import { extentsDiffer } from "../../ir/scalar/fold.ts";
import { printScalar } from "../../ir/scalar/print.ts";
import { at } from "../../support/invariant.ts";
import type { Fault } from "./fault.ts";

export function checkOp(op: Op, tensors: readonly Tensor[]): readonly Fault[] {
  const unordered = op.inputs.findIndex((id, i) => !isOrder(operandOrder(op, i), at(tensors, id)));
  if (unordered >= 0) return [orderFault(op, unordered, at(tensors, at(op.inputs, unordered)))];
  const operands = op.inputs.map((id, i) => permuted(at(tensors, id), operandOrder(op, i)));
  const results = resultsOf(op, operands, at(tensors, op.output));
  if ("message" in results) return [results];
  const outputs = outputsOf(op);
  if (outputs.length !== results.length) return [outputCountFault(op, outputs.length, results.length)];
  return results.flatMap((result, i) => checkOutput(op, at(tensors, at(outputs, i)), result, tensors));
}

function outputCountFault({ kind }: Op, found: number, expected: number): Fault {
  return {
    message: `${kind} has the wrong number of outputs`,
    found: String(found),
    expected: String(expected),
    help: "give the op all of its outputs",
  };
}

function isOrder(order: readonly number[] | null, { domain }: Tensor): boolean {
  if (order === null) return true;
  const count = withoutReductions(domain.logical).length;
  return order.length === count && new Set(order).size === count && order.every((axis) => axis >= 0 && axis < count);
}

function orderFault(op: Op, operand: number, tensor: Tensor): Fault {
  const count = withoutReductions(tensor.domain.logical).length;
  return {
    message: `operand ${operand} of ${op.kind} is read in an order that is not a permutation of its axes`,
    found: `{${(operandOrder(op, operand) ?? []).join(", ")}} of ${count} axes`,
    expected: `every number from 0 to ${count - 1} once`,
    help: "name every axis of the tensor once",
  };
}

/** The tensor with its logical axes in the order in which an op with a folded permute reads them. */
function permuted(tensor: Tensor, order: readonly number[] | null): Tensor {
  if (order === null) return tensor;
  const axes = withoutReductions(tensor.domain.logical);
  return { ...tensor, domain: { ...tensor.domain, logical: order.map((axis) => at(axes, axis)) } };
}

/** The outputs by the op's rules, or the fault if its arguments do not fit its operands. */
function resultsOf(op: Op, operands: readonly Tensor[], output: Tensor): readonly OutputShape[] | Fault {
  try {
    const spec = rowOf(op).respec(op, operands, output, place);
    return inferOutputs(spec, operands, place);
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    const { message, found = "", expected = "", help = "" } = at(error.diagnostics, 0);
    return { message, found, expected, help };
  }
}

/** A placeholder, because findings name the statement. */
const place: Call = { kind: "call", text: "op" };

/**
 * Reduced axes take no memory. A contraction's output may lack the axis, as a slice of a draft's does, and a view's may
 * keep those of its source.
 */
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
        message: `the output of ${kind} does not have the op's dtype`,
        found: output.dtype,
        expected: dtype,
        help: "give the output the op's dtype, or convert with a Cast",
      },
    ];
  }
  const partial = partialAxes(op, tensors);
  // Whether the op contracts a chunk of the extent that the output's reduced axis prints.
  const isChunk = partial.length > 0 || (isContraction(op) && op.accumulate !== undefined);
  const logical = output.domain.logical.filter((axis) => !partial.includes(axis));
  const own = rowOf(op).isView ? withoutReductions(logical) : logical;
  const given = isContraction(op) && logical.at(-1)?.iterType !== "reduction" ? axes.slice(0, -1) : axes;
  const fits =
    own.length === given.length &&
    partial.every(({ parallelType }) => isDID(parallelType)) &&
    // Reduced extents need not match: a reduction within each device prints the device's share, a chunk the whole.
    own.every((axis, i) =>
      // A batch axis that a matmul contracts must match.
      axis.iterType === "reduction" && op.kind === "Matmul" && i < given.length - 3
        ? !extentsDiffer(axis.extent, at(given, i).extent)
        : sameAxis(axis, at(given, i), isChunk),
    );
  if (fits) return [];
  return [
    {
      message: `the output of ${kind} does not have the op's axes`,
      found: `${shapeText(output)}${reducedText(logical)}`,
      expected: `[${withoutReduced(axes).join(", ")}]${reducedText(axes)}`,
      help: "give the output the op's axes, the reduced ones included",
    },
  ];
}

function isContraction(op: Op): op is MatmulOp | LinearOp {
  return op.kind === "Matmul" || op.kind === "Linear";
}

function sameAxis(own: AxisShape, given: AxisShape, isChunk: boolean): boolean {
  const isReduced = own.iterType === "reduction";
  if (isReduced !== (given.iterType === "reduction")) return false;
  return (isReduced && isChunk) || !extentsDiffer(own.extent, given.extent);
}

function withoutReduced(axes: readonly AxisShape[]): readonly string[] {
  return axes.filter(({ iterType }) => iterType !== "reduction").map(({ extent }) => printScalar(extent));
}

function reducedText(axes: readonly AxisShape[]): string {
  const count = axes.filter(({ iterType }) => iterType === "reduction").length;
  return count === 0 ? "" : ` and ${count} reduced ${count === 1 ? "axis" : "axes"}`;
}
