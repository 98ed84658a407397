/** The flight record of one rank, as it is written when a run fails, hangs or is asked. */
import { at } from "../../support/invariant.ts";
import type { FlightPlan } from "./flight-plan.ts";
import { readFlight } from "./flight-words.ts";

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
  /** By stream: the last commands that it has begun or ended, oldest first. */
  readonly last: readonly (readonly FlightMoment[])[];
}

/** The last command of this run that a stream is known to have begun, and to have ended; -1 for none. */
export interface FlightStanding {
  readonly begun: number;
  readonly ended: number;
  /** Whether the stream may be further: a GPU reports only transfers and runs of waits. */
  readonly orLater: boolean;
  /** Seconds before the record was written, of its last turn; null if the back end does not know. */
  readonly ago: number | null;
}

export interface FlightMoment {
  readonly step: "begun" | "ended";
  readonly command: number;
}

const mostMoments = 32;

/** What a stream of a GPU has reported in this run. */
export type Reported = { readonly command: number; readonly passed: boolean } | null;

export interface FlightSource {
  readonly rank: number;
  readonly world: number;
  readonly plan: FlightPlan;
  readonly words: Int32Array;
  /** By stream. */
  readonly standings: readonly FlightStanding[];
}

export function takeFlightRecord(
  { rank, world, plan, words, standings }: FlightSource,
  { reason, failed }: { readonly reason: string; readonly failed: boolean },
): FlightRecord {
  const { run, finished, posted } = readFlight(words);
  const last = standings.map((standing, stream) => momentsOf(plan, standing, stream, finished === run && run > 0));
  return {
    format: flightFormat,
    rank,
    world,
    reason,
    failed,
    run,
    finished,
    posted,
    reached: standings,
    last,
    ...plan,
  };
}

function momentsOf(
  { commands }: FlightPlan,
  { begun, ended }: FlightStanding,
  stream: number,
  isOver: boolean,
): readonly FlightMoment[] {
  const own = [...commands.keys()].filter((command) => at(commands, command).stream === stream);
  const reached = isOver ? own : own.filter((command) => command <= Math.max(begun, ended));
  return reached.slice(-mostMoments).map((command) => ({
    step: isOver || command <= ended || command < begun ? "ended" : "begun",
    command,
  }));
}

/** Where a stream of a GPU stands by what it has reported. */
export function reportedStanding(reported: Reported): FlightStanding {
  if (reported === null) return { begun: -1, ended: -1, orLater: true, ago: null };
  const { command, passed } = reported;
  return { begun: command, ended: passed ? command : -1, orLater: true, ago: null };
}
