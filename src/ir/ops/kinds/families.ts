/** Fields that the rows of views, and of elementwise ops, share, and the pairs of axes that rows state. */
import { isUnitAxis, type IterDomain, withoutReductions } from "../../domain.ts";
import { at } from "../../../support/invariant.ts";
import { operandDType } from "../dtype-rules.ts";
import { type Axes, type AxisPair, type AxisSource, elementWork, type Shapes } from "../row.ts";
import { elementCount } from "../../../numerics/tensor/host-tensor.ts";

const none: readonly never[] = [];

/** The op reduces and cuts nothing. Its only size rule is that paired axes are equal. */
export const local = {
  partial: (): Axes => none,
  whole: () => none,
  misfit: () => null,
  sources: () => null,
  sliced: <T>(op: T): T => op,
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

/** An op that moves elements to memory of its own. */
export const moves = {
  ...local,
  standalone: false,
  isView: false,
  flops: () => 0,
} as const;

/** A view that keeps its axes apart: all but reshape. `pairs` follow from the sources. */
export function axisView<A>(
  sources: (op: A, rank: number, starts: readonly number[]) => readonly AxisSource[],
): AxisView<A> {
  return {
    ...view,
    sources,
    pairs: (op, operands, output) => {
      const [from, to] = [at(operands, 0), withoutReductions(output)];
      return sources(op, from.length, none).flatMap(({ axis }, i) =>
        axis === null ? [] : [pair(0, at(from, i), at(to, axis))],
      );
    },
  };
}

type AxisView<A> = Omit<typeof view, "sources"> & {
  readonly sources: (op: A, rank: number, starts: readonly number[]) => readonly AxisSource[];
  readonly pairs: (op: A, operands: readonly Axes[], output: Axes) => readonly AxisPair[];
};

/** Sources of an operand with `rank` axes, of which `removed` are not in the output. */
export function sourcesWithout(removed: readonly number[], rank: number, offset: number): readonly AxisSource[] {
  let next = 0;
  return Array.from({ length: rank }, (_, i): AxisSource =>
    removed.includes(i) ? { axis: null, offset } : { axis: next++, offset: 0 },
  );
}

/** The number of an axis after another one, or none, is removed. */
export function shifted(axis: number, removed: number | null | undefined): number {
  return typeof removed === "number" && axis > removed ? axis - 1 : axis;
}

/** An op whose output elements depend only on the operands' elements at the same index. */
export const elementwise = {
  ...local,
  isView: false,
  pairs: (_: unknown, operands: readonly Axes[], output: Axes): readonly AxisPair[] =>
    operands.flatMap((axes, i) => zip(i, axes, withoutReductions(output))),
  flops: (_: unknown, { output }: Shapes) => elementCount(output),
  work: (_: unknown, { output }: Shapes) => elementWork * elementCount(output),
} as const;

/** Pairs of operand and output axes with the same index, and helpers with which the rows of ops list them. */
export function pair(operand: number, producer: IterDomain, consumer: IterDomain): AxisPair {
  const widened = producer.iterType === "broadcast" && consumer.iterType !== "broadcast";
  const broadcast = widened || (isUnitAxis(producer) && !isUnitAxis(consumer));
  return { operand, producer, consumer, broadcast, outermost: false };
}

/** Pairs axis i of `producers` with axis i of `consumers`. `consumers` may have more axes. */
export function zip(operand: number, producers: Axes, consumers: Axes): readonly AxisPair[] {
  return producers.map((producer, i) => pair(operand, producer, at(consumers, i)));
}

/** Pairs axes from the last one back, as batch axes align. */
export function zipRight(operand: number, producers: Axes, consumers: Axes): readonly AxisPair[] {
  return zip(operand, producers, consumers.slice(consumers.length - producers.length));
}
