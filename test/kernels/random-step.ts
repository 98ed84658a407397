/** A step of a random unit: the numbers that choose it, and how makers find its operands. */
import type { UnitStep, UnitValue } from "../../src/commands/kernel.ts";
import { at } from "../../src/support/invariant.ts";

export interface StepChoice {
  readonly op: number;
  readonly first: number;
  readonly second: number;
  readonly third: number;
  readonly detail: number;
}

export interface Made {
  readonly step: UnitStep;
  readonly value: UnitValue;
}

export type Maker = (values: readonly UnitValue[], choice: StepChoice) => Made | null;

export function pick<T>(items: readonly T[], choice: number): T {
  return at(items, choice % items.length);
}

export interface First extends UnitValue {
  readonly number: number;
  readonly output: number;
}

export function firstOf(values: readonly UnitValue[], { first }: StepChoice): First {
  const number = values.length - 1 - (first % values.length);
  return { ...at(values, number), number, output: values.length };
}

/** Another value that `fits`, if there is one. */
export function another(
  values: readonly UnitValue[],
  choice: number,
  fits: (value: UnitValue) => boolean,
): number | null {
  const fitting = [...values.keys()].filter((i) => fits(at(values, i)));
  return fitting.length === 0 ? null : pick(fitting.toReversed(), choice);
}
