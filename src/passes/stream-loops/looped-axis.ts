/** Finds the Stream axis of a statement's loop, and rejects Stream where no loop can run. */
import { fail } from "../../diagnostics/diagnostic.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import { isDID, type IterDomain, type Tensor } from "../../ir/domain.ts";
import type { Op } from "../../ir/ops/op.ts";
import { opRows } from "../../ir/ops/rows.ts";
import type { HostProgram, Statement } from "../../host/nodes.ts";
import { isOp } from "../../host/traverse.ts";
import { at } from "../../support/invariant.ts";
import type { LoopMember } from "./loop-member.ts";
import { axisText, opPlace, tensorList } from "../op-text.ts";
import type { LoweringOptions } from "../options.ts";

/**
 * The Stream axis of the statement's outputs, or null. Throws `stream-on-host-unit`, `stream-repeated`,
 * `stream-on-split-axis` and `stream-on-reduction-axis`.
 */
export function loopedAxis(
  statement: Statement,
  tensors: readonly Tensor[],
  { accumulate }: Pick<LoweringOptions, "accumulate">,
): IterDomain | null {
  const outputs = isOp(statement) ? [statement.output] : statement.kind === "PostOnStream" ? statement.outputs : [];
  const streamed = outputs.flatMap((output) => {
    const axes = at(tensors, output).domain.loop.filter((axis) => axis.parallelType === "Stream");
    return axes.map((axis) => ({ tensor: at(tensors, output), axis }));
  });
  const [first, second] = streamed;
  if (first === undefined) return null;
  const { tensor, axis } = first;
  const place = isOp(statement)
    ? opPlace(statement)
    : ({ kind: "statement", text: `PostOnStream of a fused unit with outputs ${tensorList(outputs)}` } as const);
  const found = axisText(tensor, axis);
  if (!isOp(statement) || !opRows[statement.kind].standalone) {
    fail({
      code: "stream-on-host-unit",
      message: "Stream is on the output of an op that cannot run as a standalone host op",
      place,
      found,
      expected: `one of ${Object.entries(opRows)
        .flatMap(([kind, { standalone }]) => (standalone ? kind.toLowerCase() : []))
        .join(", ")}`,
      help: "put set() after the op and parallelize the set's output with Stream",
    });
  }
  if (second !== undefined) {
    fail({
      code: "stream-repeated",
      message: `Stream is on two axes of T${tensor.id}`,
      place,
      found: `${found} and ${axisText(second.tensor, second.axis)}`,
      expected: "at most one Stream axis per tensor",
      help: "make one of the two axes Serial",
    });
  }
  if (!tensor.domain.logical.some((candidate) => candidate.id === axis.id)) {
    fail({
      code: "stream-on-split-axis",
      message: "Stream is on an axis made by split or merge",
      place,
      found,
      expected: "Stream on a whole logical axis",
      help: "give the input a separate axis for the chunks, and parallelize that axis",
    });
  }
  const isContracted = statement.kind === "Matmul" || statement.kind === "Linear";
  const isLooped = isContracted ? accumulate : reducesSharded(statement, axis, tensors);
  if (axis.iterType === "reduction" && !isLooped) {
    rejectReducedStream(statement, tensor, axis, isContracted);
  }
  return axis;
}

/** `isContraction`: the option `accumulate` would let the op run chunk by chunk. */
export function rejectReducedStream(op: Op, tensor: Tensor, axis: IterDomain, isContraction: boolean): never {
  return fail({
    code: "stream-on-reduction-axis",
    message: "Stream is on a reduced or contracted axis",
    place: opPlace(op),
    found: axisText(tensor, axis),
    expected: "Stream on an axis that the output keeps, or on a reduced axis that the operand shards",
    help: isContraction
      ? "set accumulate to true (--accumulate) to add the chunks' results in order, or put Stream on another axis"
      : "parallelize another axis of the output with Stream",
  });
}

/** Whether the op reduces only one axis, which is sharded: an iteration is then the share of one device. */
function reducesSharded(op: Op, axis: IterDomain, tensors: readonly Tensor[]): boolean {
  if (op.kind !== "Reduction" || op.axes.length !== 1) return false;
  const producer = axisMap(op, tensors).find(({ consumer }) => consumer.id === axis.id)?.producer;
  return producer !== undefined && isDID(producer.parallelType);
}

/** Throws `stream-on-input` for a fusion input with Stream that no op reads chunk by chunk along that axis. */
export function requireSlicedInputs({ inputs, tensors }: HostProgram, members: readonly (LoopMember | null)[]): void {
  for (const input of inputs) {
    const tensor = at(tensors, input);
    const axis = tensor.domain.loop.find((candidate) => candidate.parallelType === "Stream");
    if (axis === undefined) continue;
    const isSliced = members.some(
      (member) =>
        member?.op.inputs.some((id, operand) => id === input && member.read[operand]?.id === axis.id) === true,
    );
    if (isSliced) continue;
    fail({
      code: "stream-on-input",
      message: `fusion input T${input} is parallelized with Stream`,
      place: { kind: "tensor", text: axisText(tensor, axis) },
      found: "Stream on a fusion input",
      expected: "Stream on tensors that an op computes, or an op whose output has Stream on the same axis",
      help: "parallelize the output of the op that reads it; its input is then sliced automatically",
    });
  }
}
