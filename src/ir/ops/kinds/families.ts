/** What the rows of views and of elementwise ops have in common. */
import { withoutReductions } from "../../domain.ts";
import { type AxisPair, zip } from "../axis-pairs.ts";
import { operandDType } from "../dtype-rules.ts";
import { type Axes, elementWork, type Shapes } from "../row.ts";

const none: readonly never[] = [];

/** Reduces and cuts nothing, and fits its operands where paired axes do. */
const local = {
  partial: (): Axes => none,
  whole: () => none,
  misfit: () => null,
} as const;

/** An op of one operand that moves elements and computes nothing. */
export const view = {
  ...local,
  operands: [1, 1],
  isView: true,
  dtype: operandDType,
  flops: () => 0,
  work: () => 0,
} as const;

/** An op that computes each element of its output from those at the same index. */
export const elementwise = {
  ...local,
  isView: false,
  pairs: (_: unknown, operands: readonly Axes[], output: Axes): readonly AxisPair[] =>
    operands.flatMap((axes, i) => zip(i, axes, withoutReductions(output))),
  flops: (_: unknown, { output }: Shapes) => countOf(output),
  work: (_: unknown, { output }: Shapes) => elementWork * countOf(output),
} as const;

export function countOf(shape: readonly number[]): number {
  return shape.reduce((count, extent) => count * extent, 1);
}
