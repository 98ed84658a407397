/** How far off predictions are, by class of commands: docs/simulation.md has the model, src/explain/interval.ts uses it. */
import type { ByClass } from "./command-class.ts";

/** Mean errors: the absolute logarithms of measured over predicted times. */
export interface MeanErrors {
  readonly classes: ByClass;
  /**
   * Of the time of GEMMs in loops, besides that of all GEMMs: chunks have other shapes, start while others end, and run
   * beside what moves the next.
   */
  readonly loopedGemms: number;
  /**
   * Of the time of kernels in peers' memory beside GEMMs without an SM margin: they find SMs, or wait until the GEMM ends,
   * and the model knows which for few GEMMs.
   */
  readonly besideGemms: number;
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
  classes: { gemms: 0.0175, kernels: 0.06, copies: 0.05, transfers: 0.01, reductionsInPeers: 0.05, host: 0.2 },
  loopedGemms: 0.03,
  besideGemms: 0.3,
  run: 0.014,
  seen: { gemms: 1, kernels: 1, copies: 1, transfers: 0.69, reductionsInPeers: 1, host: 0.99 },
};
