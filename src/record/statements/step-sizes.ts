/** Checks the local sizes of ops whose kernels trust them: a hand-written program may give any. */
import type { UnitStep } from "../../commands/kernel.ts";
import { at } from "../../support/invariant.ts";
import { requireShape } from "../checks.ts";
import type { Recorder } from "../recorder.ts";

type Shape = readonly number[];

/** Throws `size-mismatch`. */
export function requireStepFits(recorder: Recorder, step: UnitStep, operands: readonly Shape[], output: Shape): void {
  for (const [what, actual, expected] of pairsOf(step, operands, output)) {
    requireShape(recorder, `${what} of ${step.kind}`, actual, expected);
  }
}

/** What must be equal. */
function pairsOf(
  step: UnitStep,
  operands: readonly Shape[],
  output: Shape,
): readonly (readonly [what: string, actual: Shape, expected: Shape])[] {
  const [first = [], index = [], source = []] = operands;
  switch (step.kind) {
    case "Cat": {
      const { axis } = step;
      const whole = operands.reduce((sum, shape) => sum + at(shape, axis), 0);
      return operands.map((shape, i) => [`operand ${i}`, shape.with(axis, whole), output]);
    }
    case "Pad":
      return [["the output", output, first.map((extent, i) => extent + padded(at(step.widths, i)))]];
    case "Reduction":
      return [["the output", output, first.filter((_, axis) => !step.axes.includes(axis))]];
    case "IndexSelect":
      return [["the output", output, first.toSpliced(step.axis, 1, ...index)]];
    case "Gather":
      return [
        ["the output", output, index],
        ["the indices", index.with(step.axis, at(first, step.axis)), first],
      ];
    case "Scan":
    case "Argsort":
      return [["the output", output, first]];
    case "ScatterAdd":
      return [
        ["the output", output, first],
        ["the source", source, index],
        ["the indices", index.with(step.axis, at(first, step.axis)), first],
      ];
    case "GroupedMatmul": {
      const batch = output.slice(0, first.length - 2);
      const [rows, k, n] = [first.at(-2) ?? 0, first.at(-1) ?? 0, index.at(-1) ?? 0];
      if (index.length === first.length) {
        return [
          ["the output", output, [...batch, source.at(-1) ?? 0, k, n]],
          ["the other rows", index.slice(-2), [rows, n]],
        ];
      }
      return [
        ["the output", output, [...batch, rows, n]],
        ["the matrices", index.slice(-3), [source.at(-1) ?? 0, k, n]],
      ];
    }
    default:
      return [];
  }
}

function padded({ before, after }: { readonly before: number; readonly after: number }): number {
  return before + after;
}
