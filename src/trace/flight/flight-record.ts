/** The flight record of one rank, as it is written when a run fails, hangs or is asked. */
import { at } from "../../support/invariant.ts";
import type { FlightPlan } from "./flight-plan.ts";
import { type FlightEntry, type FlightStep, readFlight } from "./flight-rings.ts";

export const flightFormat = "braid flight record 1";

export interface FlightRecord extends FlightPlan {
  readonly format: typeof flightFormat;
  readonly rank: number;
  /** The number of ranks. */
  readonly world: number;
  /** Why it was written. */
  readonly reason: string;
  /** Whether the run had failed on this rank or another; otherwise it went on. */
  readonly failed: boolean;
  /** The run in progress, or the last one, from 1. */
  readonly run: number;
  /** The last run that ended. */
  readonly finished: number;
  /** Commands of the list that were posted in this run. */
  readonly posted: number;
  /** By stream. */
  readonly reached: readonly FlightStanding[];
  /** By stream: the last steps, oldest first. */
  readonly last: readonly (readonly FlightMoment[])[];
}

/** The last command of this run that a stream is known to have begun, and to have ended; -1 for none. */
export interface FlightStanding {
  readonly begun: number;
  readonly ended: number;
  /** Whether the stream may be further: a GPU reports only transfers and runs of waits. */
  readonly orLater: boolean;
}

export interface FlightMoment {
  readonly step: FlightStep;
  readonly command: number;
  readonly run: number;
  /** Seconds before the record was written. */
  readonly ago: number;
}

/** What a stream of a GPU has reported in this run. */
export type Reported = { readonly command: number; readonly passed: boolean } | null;

export interface FlightSource {
  readonly rank: number;
  readonly world: number;
  readonly plan: FlightPlan;
  readonly words: Int32Array;
  /** When the recorder was made, by Date.now. */
  readonly origin: number;
}

/** `reported`: by stream, on a GPU; null where the rings have every step. `now` is Date.now(). */
export function takeFlightRecord(
  { rank, world, plan, words, origin }: FlightSource,
  reported: readonly Reported[] | null,
  { reason, failed, now }: { readonly reason: string; readonly failed: boolean; readonly now: number },
): FlightRecord {
  const { run, finished, posted, clock, streams } = readFlight(words);
  const current = Math.max(clock, now - origin);
  const inRun = (entry: FlightEntry): boolean => entry.run === run;
  return {
    format: flightFormat,
    rank,
    world,
    reason,
    failed,
    run,
    finished,
    posted,
    reached: streams.map((entries, stream) =>
      reported === null ? standingOf(entries.filter(inRun)) : standingOn(at(reported, stream)),
    ),
    last: streams.map((entries) =>
      entries.map((entry) => ({
        step: entry.step,
        command: entry.command,
        run: entry.run,
        ago: Math.max(0, Math.round(current - entry.clock) / 1000),
      })),
    ),
    ...plan,
  };
}

function standingOf(entries: readonly FlightEntry[]): FlightStanding {
  const last = (step: FlightStep): number => entries.findLast((entry) => entry.step === step)?.command ?? -1;
  const ended = last("ended");
  return { begun: Math.max(last("begun"), ended), ended, orLater: false };
}

function standingOn(reported: Reported): FlightStanding {
  if (reported === null) return { begun: -1, ended: -1, orLater: true };
  const { command, passed } = reported;
  return { begun: command, ended: passed ? command : -1, orLater: true };
}
