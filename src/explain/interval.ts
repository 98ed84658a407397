/**
 * The interval in which a predicted run's measured time is expected: of ten programs, nine. Errors are taken as
 * proportional to the time that they concern, alike within a class of commands, independent between classes, and
 * distributed double-exponentially, which a few large ones do not move much (docs/explain.md).
 */
import type { Assumption } from "../simulate/assumption.ts";
import { type ByClass, commandClasses } from "../simulate/command-class.ts";
import type { MachineProfile } from "../simulate/machine-profile.ts";
import type { ExplainedRun } from "./explain-run.ts";

/** Milliseconds. */
export interface PredictedInterval {
  readonly low: number;
  readonly high: number;
  /** The part of runs whose measured time is expected within: 0.9. */
  readonly share: number;
}

/** Mean errors: the absolute logarithms of measured over predicted times. */
export interface MeanErrors {
  readonly classes: ByClass;
  /** Of whole runs: clocks, temperature, and what the model lacks in every program. */
  readonly run: number;
}

/**
 * As found by `bench/residuals.ts` in bench/results. They hold for any profile that `braid calibrate` measured; errors
 * that the profile itself states are taken where they are greater.
 */
export const committedErrors: MeanErrors = {
  classes: { gemms: 0.02, kernels: 0.2, copies: 0.06, transfers: 0.02, reductionsInPeers: 0.03, host: 0.5 },
  run: 0.05,
};

const share = 0.9;

/** Of a double-exponential distribution, this many mean errors around the median hold `share`. */
export const meanErrorsWithin = -Math.log(1 - share);

export function intervalOf(
  { milliseconds, path, assumptions }: Pick<ExplainedRun, "milliseconds" | "path" | "assumptions">,
  { residuals }: MachineProfile,
): PredictedInterval {
  const error = meanErrorOf(milliseconds, path, errorsOf(residuals ?? {}, assumptions));
  const factor = Math.exp(meanErrorsWithin * error);
  return { low: milliseconds / factor, high: milliseconds * factor, share };
}

/** The expected absolute logarithm of measured over predicted time. */
export function meanErrorOf(milliseconds: number, path: ByClass, { classes, run }: MeanErrors): number {
  const parts = commandClasses.map((of) => (milliseconds > 0 ? (path[of] / milliseconds) * classes[of] : 0));
  return Math.hypot(run, ...parts);
}

/** Assumptions about one class are independent of each other. */
function errorsOf(residuals: Partial<ByClass>, assumptions: readonly Assumption[]): MeanErrors {
  const { classes, run } = committedErrors;
  const widened = { ...classes };
  for (const of of commandClasses) {
    const assumed = assumptions.filter((each) => each.of === of).map(({ error }) => error);
    widened[of] = Math.hypot(Math.max(classes[of], residuals[of] ?? 0), ...assumed);
  }
  return { classes: widened, run };
}
