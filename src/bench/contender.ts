/** One implementation at one size, ready to run: what measuring needs to know of Braid's programs and of processes of others alike. */
import type { Implementation } from "./implementation.ts";

/** One iteration on the ranks of this process. */
export interface Timing {
  readonly milliseconds: number;
  /** The host's time until everything is with the device, after it has waited at the barrier; null where that is not told apart. */
  readonly hostMicroseconds: number | null;
}

/** What a contender did, or why it could not. A failed one stays out of the rest of the measurement. */
export type Outcome<T> =
  { readonly kind: "done"; readonly value: T } | { readonly kind: "failed"; readonly why: string };

export interface Contender {
  readonly implementation: Implementation;
  /** What is to be known of it beyond its options: the schedule that was chosen, versions. */
  readonly note: string | null;
  /** `runs` iterations, each behind a barrier of all ranks. All ranks call it together. */
  turn(runs: number): Promise<Outcome<readonly Timing[]>>;
  /**
   * The host's microseconds for each of `runs` iterations that are issued one behind the other, behind one barrier, as a program that does not wait between does; null where that is
   * not told apart. All ranks call it together.
   */
  row(runs: number): Promise<Outcome<number | null>>;
  /** The largest error of sampled elements over what is allowed for them; above 1 the result is wrong. */
  check(): Promise<Outcome<number>>;
  release(): void;
}
