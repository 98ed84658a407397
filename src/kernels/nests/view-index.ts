/**
 * View ops as maps from an output index to an input index. Inlined into the loop that reads the output, they cost
 * nothing.
 */
import type { UnitStep } from "../../commands/kernel.ts";
import type { AxisSource, ViewKind } from "../../ir/ops/row.ts";
import { rowOf } from "../../ir/ops/rows.ts";
import { at } from "../../support/invariant.ts";
import { type Affine, constantIndex, dot, scale, sum } from "./affine.ts";
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
  const sources = viewSources(step, inputShape.length);
  if (sources === null) return reshapeIndex(index, inputShape, outputShape, space);
  return sources.map(({ axis, offset }, own) => {
    if (axis === null) return constantIndex(offset);
    // Also where an expand stretches the axis.
    if (inputShape[own] === 1) return constantIndex(0);
    if (step.kind !== "Slice") return at(index, axis);
    return sum([scale(at(index, axis), at(step.ranges, own).step ?? 1), constantIndex(offset)]);
  });
}

/** Where each axis of the input is read; null for a reshape. */
export function viewSources(step: ViewStep, rank: number): readonly AxisSource[] | null {
  return rowOf(step).sources(step, rank, startsOf(step));
}

function startsOf(step: ViewStep): readonly number[] {
  if (step.kind === "Select") return [step.index];
  return step.kind === "Slice" ? step.ranges.map(({ start }) => start) : [];
}

/**
 * A reshape keeps the row-major order of elements. The axes form groups of equal element counts on both sides. Within a
 * group, the output index is combined to one number and divided by the input's extents.
 */
export function reshapeIndex(
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
