/**
 * One implementation at one size, ready to run. The interface is the same for Braid's programs and for processes of
 * others.
 */
import type { Implementation } from "./implementation.ts";

/** One iteration on the ranks of this process. */
export interface Timing {
  readonly milliseconds: number;
  /** The host's microseconds from the barrier until everything is enqueued; null if it is not measured. */
  readonly hostMicroseconds: number | null;
}

/**
 * The result of a contender, or the reason why it failed. A failed contender is left out of the rest of the
 * measurement.
 */
export type Outcome<T> =
  { readonly kind: "done"; readonly value: T } | { readonly kind: "failed"; readonly why: string };

export interface Contender {
  readonly implementation: Implementation;
  /** Information beyond its options: the chosen schedule, or versions. */
  readonly note: string | null;
  /** Collective: `runs` iterations, each after a barrier of all ranks. */
  turn(runs: number): Promise<Outcome<readonly Timing[]>>;
  /**
   * Collective: the host's microseconds per iteration for `runs` iterations that follow each other after one barrier,
   * like a program that does not wait between iterations; null if it is not measured.
   */
  row(runs: number): Promise<Outcome<number | null>>;
  /**
   * Collective: the largest error of sampled elements over its bound; above 1 the result is wrong. Null if there is
   * nothing to compare with.
   */
  check(): Promise<Outcome<number | null>>;
  release(): void;
}
