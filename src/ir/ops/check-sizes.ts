/**
 * Checks an op once its sizes are known; shape rules assume symbolic extents to be equal. Paired axes must have equal
 * sizes (1 for a broadcast operand). A slice or select must be inside its axis. A reshape must keep the number of
 * elements.
 */
import { fail, type Place } from "../../diagnostics/diagnostic.ts";
import { at } from "../../support/invariant.ts";
import type { Tensor } from "../domain.ts";
import { printIterDomain, printTensor } from "../print-tensor.ts";
import { evaluateExtent, shapeOf, type Sizes } from "../sizes.ts";
import { axisMap } from "./axis-map.ts";
import { type Op, outputsOf } from "./op.ts";
import { rowOf } from "./rows.ts";

/** Throws `size-mismatch`, `index-out-of-range`, `size-missing`. */
export function requireSizesFit(op: Op, tensors: readonly Tensor[], sizes: Sizes): void {
  const place = (): Place => opPlace(op, tensors);
  const pairs = outputsOf(op).flatMap((_, which) => axisMap(op, tensors, which));
  for (const { producer, consumer, broadcast, operand, outermost } of pairs) {
    if (outermost) continue;
    const from = evaluateExtent(producer.extent, sizes, place);
    const to = evaluateExtent(consumer.extent, sizes, place);
    if (from === to || (broadcast && from === 1)) continue;
    fail("size-mismatch", `${op.kind} has operand and output axes of different sizes`, {
      place: place(),
      found: `${printIterDomain(producer)} of T${at(op.inputs, operand)} has ${from}, ${printIterDomain(consumer)} of T${op.output} has ${to}`,
      expected: "equal sizes",
      help: "pass inputs whose shapes agree",
    });
  }
  const misfit = rowOf(op).misfit(op, {
    input: op.inputs.slice(0, 1).flatMap((id) => shapeOf(at(tensors, id), sizes)),
    operands: () => op.inputs.map((id) => shapeOf(at(tensors, id), sizes)),
    output: () => shapeOf(at(tensors, op.output), sizes),
    valueOf: (extent) => evaluateExtent(extent, sizes, place),
  });
  if (misfit !== null) fail({ ...misfit, place: place() });
}

function opPlace(op: Op, tensors: readonly Tensor[]): Place {
  const operands = op.inputs.map((id) => printTensor(at(tensors, id))).join(", ");
  return { kind: "statement", text: `T${op.output} = ${op.kind}(${operands})` };
}
