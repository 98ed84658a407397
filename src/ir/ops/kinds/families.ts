/** Fields that the rows of views, and of elementwise ops, share. */
import { withoutReductions } from "../../domain.ts";
import { type AxisPair, zip } from "../axis-pairs.ts";
import { operandDType } from "../dtype-rules.ts";
import { type Axes, elementWork, type Shapes } from "../row.ts";

const none: readonly never[] = [];

/** The op reduces and cuts nothing. Its only size rule is that paired axes are equal. */
const local = {
  partial: (): Axes => none,
  whole: () => none,
  misfit: () => null,
} as const;

/** An op of one operand that moves elements without computing. */
export const view = {
  ...local,
  operands: [1, 1],
  isView: true,
  dtype: operandDType,
  flops: () => 0,
  work: () => 0,
} as const;

/** An op whose output elements depend only on the operands' elements at the same index. */
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
