/**
 * What a profile lacks, and how far off the time is that is taken instead (docs/simulation.md). The errors of sizes outside
 * of a profile were found in the runs of bench/results; those of other collectives and numbers of devices by predicting
 * the profiles of two and four H200 with each other.
 */
import type { CommandClass } from "./command-class.ts";

export interface Assumption {
  /** A sentence for the user. */
  readonly text: string;
  /** The commands whose times it concerns. */
  readonly of: CommandClass;
  /**
   * Their mean error, as the absolute logarithm of the ratio of measured to predicted times. Null if it is not known: a
   * program that needs them has no interval.
   */
  readonly error: number | null;
}

/** Takes an assumption, which may be one that it has taken before. */
export type Assume = (assumption: Assumption) => void;

/** Mean errors, as in `Assumption`. */
export const assumedErrors = {
  /** A GEMM or attention timed in a dtype of elements of another size. */
  otherElementSize: null,
  /** A GEMM in float on GPUs that is timed by those of 16 bits: measured in one size, where the error was 1 %. */
  floatOnGpus: 0.2,
  /** A GEMM of 8-bit floats on GPUs that is timed by those of 16 bits: measured in six sizes on H200. */
  float8OnGpus: 0.05,
  /** The same, with elements of the same size, and for kernels that are bound by memory. */
  otherDType: 0.05,
  /** A GEMM larger than the grid, for each doubling along an axis. */
  aboveGrid: 0.015,
  /** A GEMM with fewer rows than a tile: a tile is computed whole. */
  insideTile: 0.1,
  /** A GEMM smaller than the grid, for each halving along an axis, and at most: a launch takes some time. */
  belowGrid: 0.4,
  mostBelowGrid: 0.9,
  /** More bytes than were timed, for each doubling. */
  moreBytes: 0.03,
  /** A collective timed as another. */
  otherCollective: 0.2,
  /** A collective of another number of ranks, for each doubling or halving. */
  otherTeam: 0.4,
  /** Transfers between hosts timed as within one. */
  otherNetwork: null,
  /** Copies and kernels in peers' memory of another number of devices, for each doubling or halving. */
  otherDevices: 0.18,
  /** Kernels in peers' memory timed as copies, and sums of slots timed as other kernels. */
  otherKernel: 0.3,
} as const;

/** How often a number is to be doubled or halved to get the other. */
export function doublings(a: number, b: number): number {
  return Math.abs(Math.log2(a / b));
}

export interface Assumptions {
  readonly assume: Assume;
  /** Sorted by their sentences, each with its greatest error. */
  readonly all: () => readonly Assumption[];
}

/** Keeps one assumption for each sentence. */
export function createAssumptions(): Assumptions {
  const taken = new Map<string, Assumption>();
  return {
    assume: (assumption) => {
      const known = taken.get(assumption.text);
      if (known === undefined || errorOf(assumption) >= errorOf(known)) taken.set(assumption.text, assumption);
    },
    all: () => [...taken.keys()].toSorted().flatMap((text) => taken.get(text) ?? []),
  };
}

function errorOf({ error }: Assumption): number {
  return error ?? Infinity;
}
