/**
 * The axes of an op's operands that a loop over an axis of its output slices. An operand without the axis, or with one
 * element along it, is read whole.
 */
import { fail } from "../../diagnostics/diagnostic.ts";
import { cutOf } from "../../ir/parts.ts";
import { isUnitAxis, type IterDomain, type Tensor } from "../../ir/domain.ts";
import { axisMap, siblingAxes } from "../../ir/ops/axis-map.ts";
import { type Op, outputsOf } from "../../ir/ops/op.ts";
import { constantValue, foldProduct } from "../../ir/scalar/fold.ts";
import { at } from "../../support/invariant.ts";
import { axisText, opPlace } from "../op-text.ts";
import { chunkFit, type Chunks } from "../../ir/stream.ts";

/**
 * For each operand the axis that maps to `looped`, an axis of the op's output, or null. Throws `stream-on-cut-axis` and
 * `stream-on-split-axis`.
 */
export function loopedOperandAxes(
  op: Op,
  looped: IterDomain,
  chunks: Chunks | null,
  tensors: readonly Tensor[],
): readonly (IterDomain | null)[] {
  // An op without operands makes any chunk.
  if (op.inputs.length === 0) return [];
  const output = at(tensors, op.output);
  const pairs = axisMap(op, tensors).filter((pair) => pair.consumer.id === looped.id);
  const parts = chunks === null ? null : chunkCount(output, looped, chunks);
  const isRearranged = pairs.some((pair) => pair.outermost && !isEven(pair.producer, pair.consumer, parts));
  if (pairs.length === 0 || isRearranged) {
    const isMade = op.kind !== "Slice" && op.kind !== "Select";
    fail({
      code: "stream-on-cut-axis",
      message: isMade ? "Stream is on an axis that the op makes" : "Stream is on an axis that the op slices",
      place: opPlace(op),
      found: axisText(output, looped),
      expected: "Stream on an axis that the op keeps in full",
      help:
        "put set() after the op and parallelize the set's output with Stream: " +
        "the op runs whole before the loop and overlaps with nothing",
    });
  }
  return op.inputs.map((id, operand) => {
    const pair = pairs.find((each) => each.operand === operand);
    if (pair === undefined) return null;
    if (chunks === null) return pair.producer;
    // The one element of an axis, which every device has, is stretched to whatever a chunk of a share has.
    const isOne = (op.kind === "Binary" || op.kind === "Ternary") && isUnitAxis(pair.producer);
    if (pair.broadcast || (isOne && chunkFit(cutOf(at(tensors, id).domain, pair.producer), chunks).kind === "whole"))
      return null;
    requireChunks(op, at(tensors, id), pair.producer, chunks);
    return pair.producer;
  });
}

/** The axis of output `which` that the loop slices with `looped` of the first. Throws `stream-on-cut-axis`. */
export function loopedFurtherAxis(op: Op, looped: IterDomain, which: number, tensors: readonly Tensor[]): IterDomain {
  const own = siblingAxes(op, tensors, which).find(({ first }) => first.id === looped.id)?.further;
  if (own !== undefined) return own;
  const { id } = at(tensors, at(outputsOf(op), which));
  return fail({
    code: "stream-on-cut-axis",
    message: `Stream is on an axis that T${id} does not have`,
    place: opPlace(op),
    found: axisText(at(tensors, op.output), looped),
    expected: "Stream on an axis that all outputs of the op share",
    help: "put Stream on one of the axes in front of the matrices",
  });
}

/** The chunks of all devices; null if their number is not known. */
function chunkCount({ domain }: Tensor, axis: IterDomain, { parts, within }: Chunks): number | null {
  const shares = cutOf(domain, axis).parts.slice(0, within.length);
  return constantValue(foldProduct([parts, ...shares.map(({ extent }) => extent)]));
}

/** Whether the `parts` chunks of two outermost axes of a reshape have the same elements. */
function isEven(producer: IterDomain, consumer: IterDomain, parts: number | null): boolean {
  return [producer, consumer].every(({ extent }) => {
    const size = constantValue(extent);
    return parts !== null && size !== null && size % parts === 0;
  });
}

/** Throws `stream-on-split-axis` if the loop's chunks are not runs of what each device has of the operand. */
function requireChunks(op: Op, operand: Tensor, axis: IterDomain, chunks: Chunks): void {
  const fit = chunkFit(cutOf(operand.domain, axis), chunks);
  if (fit.kind === "fits") return;
  const within = chunks.within.join(" and ");
  fail({
    code: "stream-on-split-axis",
    message:
      fit.kind === "whole"
        ? `a chunk of each device's share is not one run of T${operand.id}, which every device has in full`
        : `a chunk of the whole axis is not on one device: T${operand.id} is cut over devices first`,
    place: opPlace(op),
    found: axisText(operand, axis),
    expected:
      fit.kind === "whole"
        ? `${within} on the axis of T${operand.id} too, or Stream outside of ${within}`
        : `Stream inside of ${fit.type} on the op's output, or a set() to Stream without ${fit.type} before the op`,
    help:
      fit.kind === "whole"
        ? `split the axis by the number of chunks first, and its inner part by the devices: nothing is lost in overlap`
        : `put set() before the op and give it Stream without ${fit.type}: it gathers chunk by chunk, and the op overlaps with it`,
  });
}
