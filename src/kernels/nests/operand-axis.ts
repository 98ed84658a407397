/**
 * How a cut of a step's output cuts its operands. Computing only a range of the output along one axis needs either the same range
 * of an operand along one of its axes, or the whole operand, or what is no box of the operand.
 */
import type { UnitStep } from "../../commands/kernel.ts";
import { at } from "../../support/invariant.ts";
import { unreachable } from "../../support/unreachable.ts";

/** The operand's axis that is cut as the output is; `whole`: all of the operand is read; `torn`: no range of one axis is. */
export type OperandAxis = number | "whole" | "torn";

export interface StepShapes {
  /** One per input of the step. */
  readonly inputs: readonly (readonly number[])[];
  readonly output: readonly number[];
}

/** What of input `position` the elements of a range along `axis` of the output need. The output has more than one element there. */
export function operandAxis(step: UnitStep, position: number, axis: number, shapes: StepShapes): OperandAxis {
  const shape = at(shapes.inputs, position);
  const extent = at(shapes.output, axis);
  switch (step.kind) {
    case "Set":
    case "Unary":
    case "Cast":
    case "Binary":
      return shape[axis] === 1 ? "whole" : axis;
    case "Reduction":
    case "Squeeze":
      return at(
        [...shape.keys()].filter((i) => !step.axes.includes(i)),
        axis,
      );
    case "Broadcast":
      return axis - step.flags.slice(0, axis).filter(Boolean).length;
    case "Permute":
      return at(step.order, axis);
    case "Reshape":
      return reshapedAxis(shape, shapes.output, axis);
    case "Slice":
      return shape[axis] === extent ? axis : "torn";
    case "Select":
      return axis < step.axis ? axis : axis + 1;
    case "Matmul":
      return matmulAxis(position, axis, shapes);
    case "Linear":
      return linearAxis(position, axis, shapes);
    default:
      return unreachable(step);
  }
}

/** The input's axis with the same elements before, along and behind it. Axes of one element say nothing. */
function reshapedAxis(input: readonly number[], output: readonly number[], axis: number): OperandAxis {
  const behind = (shape: readonly number[], i: number): number =>
    shape.slice(i + 1).reduce((product, extent) => product * extent, 1);
  const inner = behind(output, axis);
  const found = input.findIndex((extent, i) => extent === output[axis] && behind(input, i) === inner);
  return found < 0 ? "torn" : found;
}

function matmulAxis(position: number, axis: number, { inputs, output }: StepShapes): OperandAxis {
  const [rows, columns] = [0, 1].map((i) => (at(inputs, i).length > 1 ? 1 : 0));
  const shape = at(inputs, position);
  const batch = output.length - (rows ?? 0) - (columns ?? 0);
  if (axis < batch) {
    const own = axis - batch + shape.length - 2;
    return (shape[own] ?? 1) === 1 ? "whole" : own;
  }
  const isRow = rows === 1 && axis === batch;
  if (position === 0) return isRow ? shape.length - 2 : "whole";
  return isRow ? "whole" : shape.length - 1;
}

function linearAxis(position: number, axis: number, { inputs, output }: StepShapes): OperandAxis {
  const isColumn = at(inputs, 1).length > 1 && axis === output.length - 1;
  if (position === 0) return isColumn ? "whole" : axis;
  return isColumn ? 0 : "whole";
}
