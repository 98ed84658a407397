/**
 * Whether known sizes fit an op: what shape rules could only assume about symbolic extents. Axes that the op joins must
 * have equal sizes (a broadcast operand has 1), a slice and a select must lie inside, a reshape must keep the count.
 */
import { type Diagnostic, fail, type Place } from "../../diagnostics/diagnostic.ts";
import { at } from "../../support/invariant.ts";
import { axisMap } from "./axis-map.ts";
import type { Tensor } from "../domain.ts";
import type { Op } from "./op.ts";
import { printIterDomain, printTensor } from "../print-tensor.ts";
import { evaluateExtent, shapeOf, type Sizes } from "../sizes.ts";

/** Throws `size-mismatch`, `index-out-of-range`, `size-missing`. */
export function requireSizesFit(op: Op, tensors: readonly Tensor[], sizes: Sizes): void {
  const place = (): Place => opPlace(op, tensors);
  for (const { producer, consumer, broadcast, operand } of axisMap(op, tensors)) {
    const from = evaluateExtent(producer.extent, sizes, place);
    const to = evaluateExtent(consumer.extent, sizes, place);
    if (from === to || (broadcast && from === 1)) continue;
    reject(op, tensors, {
      code: "size-mismatch",
      message: `axes that ${op.kind} joins have different sizes`,
      found: `${printIterDomain(producer)} of T${at(op.inputs, operand)} has ${from}, ${printIterDomain(consumer)} of T${op.output} has ${to}`,
      expected: "equal sizes",
      help: "pass inputs whose shapes agree",
    });
  }
  const shape = shapeOf(at(tensors, at(op.inputs, 0)), sizes);
  switch (op.kind) {
    case "Slice":
      op.ranges.forEach(({ start, stop }, axis) => {
        if (stop > at(shape, axis)) rejectIndex(op, tensors, axis, `[${start}, ${stop})`, at(shape, axis));
      });
      return;
    case "Select": {
      const index = evaluateExtent(op.index, sizes, place);
      const size = at(shape, op.axis);
      if (index < 0 || index >= size) rejectIndex(op, tensors, op.axis, String(index), size);
      return;
    }
    case "Reshape":
      requireSameCount(op, tensors, shape, shapeOf(at(tensors, op.output), sizes));
      return;
    case "Set":
    case "Unary":
    case "Cast":
    case "Binary":
    case "Reduction":
    case "Broadcast":
    case "Squeeze":
    case "Permute":
    case "Matmul":
    case "Linear":
      return;
  }
}

function requireSameCount(op: Op, tensors: readonly Tensor[], from: readonly number[], to: readonly number[]): void {
  const count = (shape: readonly number[]): number => shape.reduce((product, extent) => product * extent, 1);
  // An inferred extent rounds down, so the counts also differ where it does not divide.
  if (count(from) === count(to)) return;
  reject(op, tensors, {
    code: "size-mismatch",
    message: "a reshape would change the number of elements",
    found: `[${from.join(", ")}] to [${to.join(", ")}]`,
    expected: "the same number of elements",
    help: "pass inputs whose sizes divide as the reshape asks",
  });
}

function rejectIndex(op: Op, tensors: readonly Tensor[], axis: number, index: string, size: number): never {
  return reject(op, tensors, {
    code: "index-out-of-range",
    message: `${op.kind} reaches outside axis ${axis}`,
    found: `${index} of size ${size}`,
    expected: `an index below ${size}`,
    help: "pass a larger input, or change the index",
  });
}

function reject(op: Op, tensors: readonly Tensor[], diagnostic: Omit<Diagnostic, "place">): never {
  return fail({ ...diagnostic, place: opPlace(op, tensors) });
}

function opPlace(op: Op, tensors: readonly Tensor[]): Place {
  const operands = op.inputs.map((id) => printTensor(at(tensors, id))).join(", ");
  return { kind: "statement", text: `T${op.output} = ${op.kind}(${operands})` };
}
