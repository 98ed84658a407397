/**
 * One implementation at one size, ready to run. The interface is the same for Braid's programs and for processes of
 * others.
 */
import type { Exchange, Outcome } from "../../src/launch/exchange.ts";
import type { Implementation } from "./implementation.ts";
import type { Traced } from "./traced-run.ts";

/** One iteration on the ranks of this process. */
export interface Timing {
  readonly milliseconds: number;
  /** The host's microseconds from the barrier until everything is enqueued; null if it is not measured. */
  readonly hostMicroseconds: number | null;
}

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
  /** Collective: a traced run, explained; null for those of which none is wanted. */
  trace(exchange: Exchange): Promise<Outcome<Traced | null>>;
  release(): void;
}
