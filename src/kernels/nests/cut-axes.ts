/**
 * Along which axis every value of a unit is cut when its first result is cut along one: the constraints of all steps, solved by going
 * from outputs to operands and back until nothing changes.
 */
import type { UnitKernel, UnitStep } from "../../commands/kernel.ts";
import { at } from "../../support/invariant.ts";
import { operandAxis, type StepShapes } from "./operand-axis.ts";
import { isViewStep } from "./view-index.ts";

/** One per value: the axis that is cut, or null where every part has the whole value. */
export type CutAxes = readonly (number | null)[];

/** null: the parts would need boxes that overlap, would compute a value more than once, or would all write one result. */
export function cutAxes(unit: Pick<UnitKernel, "values" | "steps" | "results">, axis: number): CutAxes | null {
  const cuts = new Map<number, number | null>();
  let [changed, torn] = [false, false];
  const set = (value: number, cut: number | null): void => {
    const known = cuts.get(value);
    if (known === undefined) {
      cuts.set(value, cut);
      changed = true;
    } else if (known !== cut) torn = true;
  };
  const visit = (step: UnitStep): void => {
    const shapes = shapesOf(unit, step);
    const cut = cuts.get(step.output);
    if (cut === undefined) {
      const found = outputCut(step, shapes, cuts);
      if (found === "torn") torn = true;
      else if (found !== null) set(step.output, found);
      return;
    }
    for (const [position, input] of step.inputs.entries()) {
      const follows = cut === null ? "whole" : operandAxis(step, position, cut, shapes);
      if (follows === "torn") torn = true;
      else set(input, follows === "whole" ? null : follows);
    }
  };
  set(at(unit.results, 0), axis);
  while (changed && !torn) {
    changed = false;
    for (const step of unit.steps.toReversed()) visit(step);
  }
  if (torn) return null;
  const isCut = (value: number): boolean => (cuts.get(value) ?? null) !== null;
  const needed = unit.steps.filter(({ output }) => cuts.has(output));
  if (!unit.results.every(isCut)) return null;
  if (!needed.every((step) => isViewStep(step) || isCut(step.output))) return null;
  return unit.values.map((_, value) => cuts.get(value) ?? null);
}

/** The output's axis that an operand's cut asks for; null while no operand is cut. */
function outputCut(
  step: UnitStep,
  shapes: StepShapes,
  cuts: ReadonlyMap<number, number | null>,
): number | "torn" | null {
  for (const [position, input] of step.inputs.entries()) {
    const cut = cuts.get(input) ?? null;
    if (cut === null) continue;
    const extents = [...shapes.output.entries()].filter(([, extent]) => extent > 1);
    return extents.find(([axis]) => operandAxis(step, position, axis, shapes) === cut)?.[0] ?? "torn";
  }
  return null;
}

function shapesOf({ values }: Pick<UnitKernel, "values">, step: UnitStep): StepShapes {
  return { inputs: step.inputs.map((input) => at(values, input).shape), output: at(values, step.output).shape };
}
