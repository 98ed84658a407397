/**
 * View ops as maps from an output index to an input index. Inlined into the loop that reads the output, they cost
 * nothing.
 */
import type { UnitStep } from "../../commands/kernel.ts";
import type { ViewKind } from "../../ir/ops/row.ts";
import { rowOf } from "../../ir/ops/rows.ts";
import { at } from "../../support/invariant.ts";
import { unreachable } from "../../support/unreachable.ts";
import { type Affine, constantIndex, dot, sum } from "./affine.ts";
import type { IndexSpace } from "./index-space.ts";
import { contiguousStrides } from "../../commands/view.ts";

export type ViewStep = Extract<UnitStep, { readonly kind: ViewKind }>;

export function isViewStep(step: UnitStep): step is ViewStep {
  return rowOf(step).isView;
}

/** The input index for the output index `index`. The shapes are those of the step's input and output. */
export function viewIndex(
  step: ViewStep,
  index: readonly Affine[],
  inputShape: readonly number[],
  outputShape: readonly number[],
  space: IndexSpace,
): readonly Affine[] {
  switch (step.kind) {
    case "Set":
      return index;
    case "Broadcast":
      return index.filter((_, i) => step.flags[i] !== true);
    case "Squeeze": {
      const kept = index.values();
      return inputShape.map((_, axis) =>
        step.axes.includes(axis) ? constantIndex(0) : (kept.next().value ?? constantIndex(0)),
      );
    }
    case "Permute":
      return inputShape.map((_, axis) => at(index, step.order.indexOf(axis)));
    case "Reshape":
      return reshapeIndex(index, inputShape, outputShape, space);
    case "Slice":
      return index.map((axis, i) => sum([axis, constantIndex(at(step.ranges, i).start)]));
    case "Select":
      return index.toSpliced(step.axis, 0, constantIndex(step.index));
    default:
      return unreachable(step);
  }
}

/**
 * A reshape keeps the row-major order of elements. The axes form groups of equal element counts on both sides. Within a
 * group, the output index is combined to one number and divided by the input's extents.
 */
function reshapeIndex(
  index: readonly Affine[],
  inputShape: readonly number[],
  outputShape: readonly number[],
  space: IndexSpace,
): readonly Affine[] {
  const result: Affine[] = [];
  let output = 0;
  let input = 0;
  while (input < inputShape.length) {
    const firstOutput = output;
    const firstInput = input;
    let inputCount = at(inputShape, input++);
    let outputCount = output < outputShape.length ? at(outputShape, output++) : 1;
    while (inputCount !== outputCount) {
      if (inputCount < outputCount) inputCount *= at(inputShape, input++);
      else outputCount *= at(outputShape, output++);
    }
    const shape = outputShape.slice(firstOutput, output);
    let rest = dot(index.slice(firstOutput, output), contiguousStrides(shape));
    const digits: Affine[] = [];
    for (let axis = input - 1; axis > firstInput; axis--) {
      const { quotient, remainder } = space.divide(rest, at(inputShape, axis));
      digits.unshift(remainder);
      rest = quotient;
    }
    result.push(rest, ...digits);
  }
  return result;
}
