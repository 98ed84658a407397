/**
 * Finds in committed runs what src/simulate/gemm-cost.ts and src/explain/interval.ts have: what the profiles' times have to
 * be multiplied with, and then the mean errors whose intervals are the narrowest that hold 90 %. Every kind of run counts
 * as much as any other.
 */
import { type IntervalRun, meanErrorOf, meanErrorsWithin } from "../../src/explain/interval.ts";
import { byCommandClass, commandClasses } from "../../src/simulate/command-class.ts";
import { inUse, type InUse } from "../../src/simulate/gemm-cost.ts";
import type { MeanErrors } from "../../src/simulate/mean-errors.ts";
import { at } from "../../src/support/invariant.ts";
import { createTextDigest } from "../../src/tune/choose/consider.ts";
import type { PredictedRun } from "./predicted-runs.ts";

export interface Fit {
  readonly inUse: InUse;
  readonly errors: MeanErrors;
}

/** Half of the programs, by a digest of their description: in these runs errors are found, the others test them. */
export function isForFit({ text }: Pick<PredictedRun, "text">): boolean {
  const digest = createTextDigest();
  digest.add(text);
  return /[02468]$/.test(digest.value());
}

/**
 * Runs that the interval is about. Those of the self-test are of an older Braid, and by the host's clock, which adds the
 * time in which ranks start apart. No profile has GEMMs in float.
 */
export function isCovered({ kind, assumptions }: PredictedRun): boolean {
  return kind !== "pipelines of the self-test" && !assumptions.some(({ text }) => text.startsWith("no calibration"));
}

export function fit(runs: readonly PredictedRun[]): Fit {
  const found = fitInUse(runs);
  return { inUse: found, errors: fitErrors(runs.map((run) => withInUse(run, found))) };
}

const gemmSteps = [1, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06];
const memorySteps = [1, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3];
const startSteps = [0, 2.5, 5, 7.5, 10, 12.5, 15];

/** Those of the steps with the least mean error. */
function fitInUse(runs: readonly PredictedRun[]): InUse {
  const weights = weightsOf(runs);
  const tried = gemmSteps.flatMap((gemms) =>
    memorySteps.flatMap((memory) => startSteps.map((start): InUse => ({ gemms, memory, start }))),
  );
  const lossOf = (figures: InUse): number => weightedSum(runs, weights, (run) => errorOf(withInUse(run, figures)));
  return best(tried, lossOf);
}

/** The run as it is predicted with other figures, to first order. */
export function withInUse(run: PredictedRun, { gemms, memory, start }: InUse): PredictedRun {
  const { perInUse, milliseconds } = run;
  const now = inUse({ on: "cuda" });
  const more =
    perInUse.gemms * (gemms / now.gemms - 1) +
    perInUse.memory * (memory / now.memory - 1) +
    perInUse.start * (start - now.start);
  return { ...run, milliseconds: milliseconds + more };
}

const steps = [0.01, 0.015, 0.0175, 0.02, 0.025, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.3];

/** Not fitted: a greater one would make intervals of blocks, which have many kernels, hold more than 95 %. */
const ofRuns = 0.014;

/** What machines differ in most: errors one step above those found, for machines that are not in the fit. */
const differing = ["copies", "reductionsInPeers", "host"] as const;

/** One error after the other is set to the best of `steps`, those of GEMMs together, until none changes. */
function fitErrors(runs: readonly PredictedRun[]): MeanErrors {
  const weights = weightsOf(runs);
  const seen = byCommandClass((of) =>
    Math.max(...runs.map(({ path, milliseconds }) => rounded(path[of] / milliseconds))),
  );
  const scoreOf = (errors: MeanErrors): number => weightedSum(runs, weights, (run) => scoreIn(run, errors));
  let found: MeanErrors = {
    classes: byCommandClass(() => 0.05),
    loopedGemms: 0.05,
    besideGemms: 0.1,
    run: ofRuns,
    seen,
  };
  for (let least = Infinity; scoreOf(found) < least;) {
    least = scoreOf(found);
    for (const of of ["besideGemms", ...commandClasses] as const) {
      const withStep = (step: number): readonly MeanErrors[] => {
        const changed =
          of === "besideGemms"
            ? { ...found, besideGemms: step }
            : { ...found, classes: { ...found.classes, [of]: step } };
        return of === "gemms" ? steps.map((looped) => ({ ...changed, loopedGemms: looped })) : [changed];
      };
      found = best([found, ...steps.flatMap(withStep)], scoreOf);
    }
  }
  const next = (error: number): number => steps[steps.indexOf(error) + 1] ?? error;
  const wider = differing.map((of) => [of, next(found.classes[of])] as const);
  const classes = { ...found.classes, ...Object.fromEntries(wider) };
  return { ...found, classes, loopedGemms: next(found.loopedGemms) };
}

/** The interval score at 90 % of the logarithms: the width, and 20 times the distance of a time outside. */
function scoreIn(run: PredictedRun, errors: MeanErrors): number {
  const half = halfOf(run, errors);
  return 2 * half + 20 * Math.max(0, errorOf(run) - half);
}

/** The absolute logarithm of measured over predicted time. */
export function errorOf({ measured, milliseconds }: Pick<PredictedRun, "measured" | "milliseconds">): number {
  return Math.abs(Math.log(measured / milliseconds));
}

export function isInside(run: PredictedRun, errors: MeanErrors): boolean {
  return errorOf(run) <= halfOf(run, errors);
}

/** Half of the interval, as a logarithm. */
export function halfOf(run: IntervalRun, errors: MeanErrors): number {
  return meanErrorsWithin * (meanErrorOf(run, errors) ?? Infinity);
}

function weightsOf(runs: readonly PredictedRun[]): readonly number[] {
  const counts = new Map<string, number>();
  for (const { kind } of runs) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return runs.map(({ kind }) => 1 / (counts.get(kind) ?? 1));
}

function weightedSum(
  runs: readonly PredictedRun[],
  weights: readonly number[],
  of: (run: PredictedRun) => number,
): number {
  return runs.reduce((sum, run, i) => sum + of(run) * (weights[i] ?? 0), 0);
}

/** The first of those with the least loss. */
function best<T>(all: readonly T[], lossOf: (each: T) => number): T {
  const losses = all.map(lossOf);
  return at(all, losses.indexOf(Math.min(...losses)));
}

function rounded(part: number): number {
  return Math.round(100 * part) / 100;
}
