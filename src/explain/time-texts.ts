/** Words for exposed time, an interval and what widens it, in the terminal and on the report page. */
import type { Assumption } from "../simulate/assumption.ts";
import { timeText } from "../support/wording.ts";
import type { PredictedInterval } from "./interval.ts";

/** Milliseconds. Below 0, chunks on several streams fill gaps that the kernels of the serial form leave. */
export function exposedText(exposed: number): string {
  if (exposed >= 0) return `${timeText(exposed)} exposed`;
  return `nothing exposed, ${timeText(-exposed)} shorter than the serial form's kernels alone`;
}

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
  if (error >= 0.7) return `mean error a factor of ${Math.exp(error).toFixed(1)}`;
  const percent = 100 * Math.expm1(error);
  return `mean error ${percent < 0.5 ? "below 1" : percent.toFixed(0)} %`;
}
