/**
 * What a profile lacks, and how far off the time is that is taken instead. The errors were found on profiles of two and
 * four H200 (docs/explain.md): by predicting each with the other, and by leaving out points of them.
 */
import type { CommandClass } from "./command-class.ts";

export interface Assumption {
  /** A sentence for the user. */
  readonly text: string;
  /** The commands whose times it concerns. */
  readonly of: CommandClass;
  /** Their mean error, as the absolute logarithm of the ratio of measured to predicted times. */
  readonly error: number;
}

/** Takes an assumption, which may be one that it has taken before. */
export type Assume = (assumption: Assumption) => void;

/** Mean errors, as in `Assumption`. */
export const assumedErrors = {
  /** A GEMM timed in a dtype of elements of another size: GEMMs in float took 15 times as long as in bfloat16. */
  otherElementSize: 1.2,
  /** The same, with elements of the same size, and for kernels that are bound by memory. */
  otherDType: 0.05,
  /** A GEMM larger than the grid, for each doubling along an axis. */
  aboveGrid: 0.1,
  /** A GEMM smaller than the grid, for each halving along an axis, and at most: a launch takes some time. */
  belowGrid: 0.4,
  mostBelowGrid: 0.9,
  /** More bytes than were timed, for each doubling. */
  moreBytes: 0.05,
  /** A collective timed as another. */
  otherCollective: 0.2,
  /** A collective of another number of ranks, for each doubling or halving. */
  otherTeam: 0.4,
  /** Transfers between hosts timed as within one. */
  otherNetwork: 1,
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
      const { text, error } = assumption;
      if (error >= (taken.get(text)?.error ?? 0)) taken.set(text, assumption);
    },
    all: () => [...taken.keys()].toSorted().flatMap((text) => taken.get(text) ?? []),
  };
}
