/** Appends ops to a HostProgramBuilder. Their outputs follow the rules of the Fusion API's ops. */
import { requireTensor } from "../../ir/api/handle.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import type { AxisShape } from "../../ir/domain.ts";
import { type Call, call, type CallArgument, reject, shapeText } from "../../ir/ops/call.ts";
import { type NumberOperand, operandArguments } from "../../ir/ops/number-operand.ts";
import { opOf, type OpSpec } from "../../ir/ops/op.ts";
import { inferOutput, type OutputShape } from "../../ir/ops/rows.ts";
import { printTensor } from "../../ir/print-tensor.ts";
import { extentsDiffer } from "../../ir/scalar/fold.ts";
import { at } from "../../support/invariant.ts";
import type { OutputOption } from "./options.ts";
import { append, type BuilderState, ownId } from "./state.ts";
import { addLike } from "./tensors.ts";

/**
 * Appends the op over `operands` that a call of `method` asks for. `args` are the call's other arguments, which
 * diagnostics show, and `scalar` is an operand that is a number. Throws `foreign-tensor`, `shape-mismatch`,
 * `dtype-mismatch`, and any error of `specOf`.
 */
export function compute(
  state: BuilderState,
  method: string,
  operands: readonly TensorView[],
  args: readonly CallArgument[],
  { out }: OutputOption,
  specOf: (place: Call) => OpSpec,
  scalar?: NumberOperand,
): TensorView {
  operands.forEach((operand, i) => {
    requireTensor(operand, method, i);
  });
  const place = call(method, ...operandArguments(operands, scalar), ...args);
  const inputs = operands.map((operand) => ownId(state, operand, place));
  const tensors = operands.map((operand) => operand.data());
  const spec = specOf(place);
  const shape = inferOutput(spec, tensors, place);
  const output = out ?? addLike(state, shape.dtype, shape.axes, shape.numbering);
  const isChunk = (spec.kind === "Matmul" || spec.kind === "Linear") && spec.accumulate !== undefined;
  if (out !== undefined) requireFits(state, out, shape, place, out.data().domain.logical, isChunk);
  append(state, opOf(spec, inputs, ownId(state, output, place)));
  return output;
}

/**
 * Throws `shape-mismatch` or `dtype-mismatch` unless `out`, with the axes `own`, fits a result. Symbolic extents are
 * assumed equal, since only `record` knows their sizes. The reduced axis of a chunk may be any part of the output's.
 */
export function requireFits(
  state: BuilderState,
  out: TensorView,
  { dtype, axes }: OutputShape,
  place: Call,
  own: readonly AxisShape[],
  isChunk = false,
): void {
  ownId(state, out, place);
  const fits =
    out.dtype === dtype &&
    own.length === axes.length &&
    own.every((axis, i) => {
      const expected = at(axes, i);
      const reduced = axis.iterType === "reduction";
      if (reduced !== (expected.iterType === "reduction")) return false;
      return (reduced && isChunk) || !extentsDiffer(axis.extent, expected.extent);
    });
  if (fits) return;
  const [kept, reduced] = [axes.filter(isKept), axes.filter((axis) => !isKept(axis))];
  reject(place, {
    code: out.dtype === dtype ? "shape-mismatch" : "dtype-mismatch",
    message: `the given output does not fit the result of ${place.text}`,
    found: `${shapeText(out.data())} ${out.dtype}, as a whole ${printTensor(out.data())}`,
    expected: `${kept.length} axes${reduced.length === 0 ? "" : ` and ${reduced.length} reduced`} of ${dtype}, with the operands' extents`,
    help: "make the output with tensor([...]), with { reduced: extent } if the op leaves a reduced axis",
  });
}

function isKept({ iterType }: AxisShape): boolean {
  return iterType !== "reduction";
}
