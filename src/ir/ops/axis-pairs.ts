/** Pairs of operand and output axes with the same index, and helpers with which the rows of ops list them. */
import { at } from "../../support/invariant.ts";
import { isUnitAxis, type IterDomain } from "../domain.ts";

export interface AxisPair {
  /** Index in `op.inputs`. */
  readonly operand: number;
  /** An axis of the operand's logical domain. */
  readonly producer: IterDomain;
  /** An axis of the output's logical domain. */
  readonly consumer: IterDomain;
  /** The operand has one element along the axis, and the output may have more: every index reads the same element. */
  readonly broadcast: boolean;
}

type Axes = readonly IterDomain[];

export function pair(operand: number, producer: IterDomain, consumer: IterDomain): AxisPair {
  const widened = producer.iterType === "broadcast" && consumer.iterType !== "broadcast";
  return { operand, producer, consumer, broadcast: widened || (isUnitAxis(producer) && !isUnitAxis(consumer)) };
}

/** Pairs axis i of `producers` with axis i of `consumers`. `consumers` may have more axes. */
export function zip(operand: number, producers: Axes, consumers: Axes): readonly AxisPair[] {
  return producers.map((producer, i) => pair(operand, producer, at(consumers, i)));
}

/** Pairs axes from the last one back, as batch axes align. */
export function zipRight(operand: number, producers: Axes, consumers: Axes): readonly AxisPair[] {
  return zip(operand, producers, consumers.slice(consumers.length - producers.length));
}
