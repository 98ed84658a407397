/**
 * Mean errors of predictions by class of commands, as src/explain/interval.ts uses them: those that make the measured
 * times of committed runs most likely.
 */
import { meanErrorOf, type MeanErrors, meanErrorsWithin } from "../../src/explain/interval.ts";
import { byClass, commandClasses } from "../../src/simulate/command-class.ts";
import type { PredictedRun } from "./predicted-runs.ts";

/** Errors smaller than 2 % of a class are not told apart from those of the whole run. */
const steps = [0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5];

/** One error after the other is set to the most likely of `steps`, until none changes. */
export function fitErrors(runs: readonly PredictedRun[]): MeanErrors {
  let best: MeanErrors = { classes: byClass(() => 0.05), run: 0.05 };
  let least = surprise(runs, best);
  for (let changed = true; changed;) {
    changed = false;
    for (const of of ["run", ...commandClasses] as const) {
      for (const step of steps) {
        const tried = of === "run" ? { ...best, run: step } : { ...best, classes: { ...best.classes, [of]: step } };
        const found = surprise(runs, tried);
        if (found >= least) continue;
        [best, least, changed] = [tried, found, true];
      }
    }
  }
  return best;
}

/** Minus the logarithm of the likelihood, if errors are double-exponential, up to a constant. */
function surprise(runs: readonly PredictedRun[], errors: MeanErrors): number {
  return runs.reduce((sum, run) => {
    const mean = meanErrorOf(run.predicted, run.path, errors);
    return sum + Math.log(mean) + errorOf(run) / mean;
  }, 0);
}

/** The absolute logarithm of measured over predicted time. */
export function errorOf({ measured, predicted }: PredictedRun): number {
  return Math.abs(Math.log(measured / predicted));
}

export function isInside(run: PredictedRun, errors: MeanErrors): boolean {
  return errorOf(run) <= meanErrorsWithin * meanErrorOf(run.predicted, run.path, errors);
}
