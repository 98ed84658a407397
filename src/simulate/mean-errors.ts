/** How far off predictions are, by class of commands: docs/interval.md has the model, src/explain/interval.ts uses it. */
import type { ByClass } from "./command-class.ts";

/** Mean errors: the absolute logarithms of measured over predicted times. */
export interface MeanErrors {
  readonly classes: ByClass;
  /**
   * Of a run whose kernels hide communication all the time: what runs side by side is slower in ways that the model lacks.
   * It grows with the root of the part of the run in which they do, as a sum of independent delays does.
   */
  readonly hidden: number;
  /** Of whole runs: clocks, temperature, and what the model lacks in every program. */
  readonly run: number;
  /** The greatest part of a run that was of the class in the runs from which the errors were found. */
  readonly seen: ByClass;
}

/**
 * As found by `bench/residuals.ts` in half of the runs in bench/results. They hold for any profile that `braid calibrate`
 * measured; errors that the profile itself states are taken where they are greater.
 */
export const committedErrors: MeanErrors = {
  classes: { gemms: 0.02, kernels: 0.06, copies: 0.04, transfers: 0.01, reductionsInPeers: 0.06, host: 0.15 },
  hidden: 0.05,
  run: 0.015,
  seen: { gemms: 1, kernels: 1, copies: 1, transfers: 0.69, reductionsInPeers: 0.98, host: 0.99 },
};
