/**
 * The interval in which a predicted run's measured time is expected: of ten programs, nine (docs/simulation.md). Errors are
 * taken as proportional to the time that they concern, alike within a class of commands, and independent between classes.
 */
import { type ByClass, type CommandClass, commandClasses } from "../simulate/command-class.ts";
import { committedErrors, type MeanErrors } from "../simulate/mean-errors.ts";
import type { MachineProfile } from "../simulate/machine-profile.ts";
import type { ExplainedRun } from "./explain-run.ts";

/** Milliseconds. */
export interface PredictedInterval {
  readonly low: number;
  readonly high: number;
  /** The part of runs whose measured time is expected within: 0.9. */
  readonly share: number;
}

/** Of the part of a run that is more of a class than any run that was measured; of a run on a CPU, where none was. */
const unseen = 0.2;

const share = 0.9;

/** Of a double-exponential distribution, this many mean errors around the median hold `share`. */
export const meanErrorsWithin = -Math.log(1 - share);

/** What the interval of a run depends on. */
export type IntervalRun = Pick<ExplainedRun, "milliseconds" | "path" | "loopedGemms" | "besideGemms" | "assumptions">;

/** Null if the profile lacks something whose error is not known. */
export function intervalOf(run: IntervalRun, { on, residuals = {} }: MachineProfile): PredictedInterval | null {
  const error = meanErrorOf(run, committedErrors, residuals);
  if (error === null) return null;
  const factor = Math.exp(meanErrorsWithin * Math.hypot(error, on === "cpu" ? unseen : 0));
  return { low: run.milliseconds / factor, high: run.milliseconds * factor, share };
}

/**
 * The expected absolute logarithm of measured over predicted time. `residuals`: errors of classes that the profile states.
 * Assumptions about one class are independent of each other.
 */
export function meanErrorOf(
  { milliseconds, path, loopedGemms, besideGemms, assumptions }: IntervalRun,
  { classes, loopedGemms: looped, besideGemms: beside, run, seen }: MeanErrors,
  residuals: Partial<ByClass> = {},
): number | null {
  const partOf = (time: number): number => (milliseconds > 0 ? time / milliseconds : 0);
  const errorOf = (of: CommandClass): number | null => {
    const part = partOf(path[of]);
    const assumed = assumptions.filter((each) => each.of === of).map(({ error }) => error);
    if (assumed.includes(null)) return part > 0 ? null : 0;
    const error = Math.hypot(Math.max(classes[of], residuals[of] ?? 0), ...assumed.map(Number));
    return Math.hypot(part * error, Math.max(0, part - seen[of]) * unseen);
  };
  const errors = commandClasses.map(errorOf);
  if (errors.includes(null)) return null;
  const terms = [partOf(loopedGemms) * looped, partOf(besideGemms) * beside];
  return Math.hypot(run, ...terms, ...errors.map(Number));
}
