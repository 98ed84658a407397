/**
 * The axis along which each value of a unit is cut if its first result is cut along a given axis. The constraints of
 * all steps are propagated from outputs to operands and back until nothing changes.
 */
import { shapesOf } from "../../commands/as-unit.ts";
import type { UnitKernel, UnitStep } from "../../commands/kernel.ts";
import type { Shapes } from "../../ir/ops/row.ts";
import { isKept } from "../../ir/ops/kinds/views/pad.ts";
import { at, invariant } from "../../support/invariant.ts";
import { unreachable } from "../../support/unreachable.ts";
import { isFree } from "./stored-values.ts";
import { isViewStep, viewSources } from "./view-index.ts";

/** Per value, the axis that is cut, or null if every part uses the whole value. */
export type CutAxes = readonly (number | null)[];

/** Null if parts would need overlapping boxes, compute a value more than once, or all write one result. */
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
      const follows = cut === null ? "whole" : operandCut(step, position, cut, shapes);
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
  if (!needed.every((step) => isFree(unit, step) || isCut(step.output))) return null;
  return unit.values.map((_, value) => cuts.get(value) ?? null);
}

/** The output axis that an operand's cut requires; null while no operand is cut. */
function outputCut(step: UnitStep, shapes: Shapes, cuts: ReadonlyMap<number, number | null>): number | "torn" | null {
  for (const [position, input] of step.inputs.entries()) {
    const cut = cuts.get(input) ?? null;
    if (cut === null) continue;
    const extents = [...shapes.output.entries()].filter(([, extent]) => extent > 1);
    return extents.find(([axis]) => operandCut(step, position, axis, shapes) === cut)?.[0] ?? "torn";
  }
  return null;
}

/**
 * How a cut of the output cuts an operand. A number is the operand's axis that is cut alike. `whole`: every part reads
 * all of the operand. `torn`: no range of one axis has the elements.
 */
type OperandCut = number | "whole" | "torn";

/**
 * The elements of input `position` that a range along `axis` of the output needs. The output has more than one element
 * along `axis`.
 */
function operandCut(step: UnitStep, position: number, axis: number, shapes: Shapes): OperandCut {
  const shape = at(shapes.operands, position);
  const extent = at(shapes.output, axis);
  if (isViewStep(step)) {
    const sources = viewSources(step, shape.length);
    if (sources === null) return reshapedAxis(shape, shapes.output, axis);
    const own = sources.findIndex((source) => source.axis === axis);
    if (step.kind === "Expand" && shape[own] === 1) return "whole";
    return shape[own] === extent ? own : "torn";
  }
  switch (step.kind) {
    case "Unary":
    case "Cast":
    case "Binary":
    case "Ternary":
      return shape[axis] === 1 ? "whole" : axis;
    case "RandomBits":
      return position === axis + 1 ? 0 : "whole";
    case "Full":
    case "Iota":
      invariant(false, "an op without operands has none to cut", { kind: step.kind });
      break;
    case "Reduction":
      return at(
        [...shape.keys()].filter((i) => !step.axes.includes(i)),
        axis,
      );
    case "Cat":
      return step.axis === axis ? "torn" : axis;
    case "ScatterAdd":
      return step.axis === axis ? "torn" : axis;
    case "Gather":
      return position === 0 && step.axis === axis ? "whole" : axis;
    case "IndexSelect": {
      const rank = at(shapes.operands, 1).length;
      const isIndex = axis >= step.axis && axis < step.axis + rank;
      if (position === 1) return isIndex ? axis - step.axis : "whole";
      if (isIndex) return "whole";
      return axis < step.axis ? axis : axis - rank + 1;
    }
    case "Pad":
      return isKept(at(step.widths, axis)) ? axis : "torn";
    case "Matmul":
      return matmulAxis(position, axis, shapes);
    case "Linear":
      return linearAxis(position, axis, shapes);
    default:
      return unreachable(step);
  }
}

/**
 * The input axis with the same numbers of elements before it, along it and after it. Axes of one element are skipped.
 */
function reshapedAxis(input: readonly number[], output: readonly number[], axis: number): OperandCut {
  const behind = (shape: readonly number[], i: number): number =>
    shape.slice(i + 1).reduce((product, extent) => product * extent, 1);
  const inner = behind(output, axis);
  const found = input.findIndex((extent, i) => extent === output[axis] && behind(input, i) === inner);
  return found < 0 ? "torn" : found;
}

function matmulAxis(position: number, axis: number, { operands, output }: Shapes): OperandCut {
  const [rows, columns] = [0, 1].map((i) => (at(operands, i).length > 1 ? 1 : 0));
  const shape = at(operands, position);
  const batch = output.length - (rows ?? 0) - (columns ?? 0);
  if (axis < batch) {
    const own = axis - batch + shape.length - 2;
    return (shape[own] ?? 1) === 1 ? "whole" : own;
  }
  const isRow = rows === 1 && axis === batch;
  if (position === 0) return isRow ? shape.length - 2 : "whole";
  return isRow ? "whole" : shape.length - 1;
}

function linearAxis(position: number, axis: number, { operands, output }: Shapes): OperandCut {
  const isColumn = at(operands, 1).length > 1 && axis === output.length - 1;
  if (position === 0) return isColumn ? "whole" : axis;
  return isColumn ? 0 : "whole";
}
