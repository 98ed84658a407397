/** Words for an interval and for what widens it, in the terminal and on the report page. */
import type { Assumption } from "../simulate/assumption.ts";
import { timeText } from "../support/quantities.ts";
import type { PredictedInterval } from "./interval.ts";

/** `90 %: 1.08 ms to 1.33 ms`. */
export function intervalText({ low, high, share }: PredictedInterval): string {
  return `${(100 * share).toFixed(0)} %: ${timeText(low)} to ${timeText(high)}`;
}

/** Each sentence once, with its error, which the interval includes. */
export function assumedTexts(assumptions: readonly Assumption[]): readonly string[] {
  const errors = new Map(assumptions.map(({ text, error }) => [text, error]));
  return [...errors].map(([text, error]) => `${text} (${errorText(error)})`);
}

function errorText(error: number | null): string {
  if (error === null) return "error unknown, no interval";
  return `mean error ${error < 0.7 ? `${(100 * Math.expm1(error)).toFixed(0)} %` : `a factor of ${Math.exp(error).toFixed(1)}`}`;
}
