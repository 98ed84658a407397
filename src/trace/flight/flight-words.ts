/**
 * How far one rank is, in words that its host writes during a run and that another thread may read at any time. With
 * how far each stream is, they say all about the last commands: a stream runs its part of a static list in order.
 */
import { at } from "../../support/invariant.ts";

const words = {
  /** The run in progress, or the last one; from 1. */
  run: 0,
  /** The last run that ended. */
  finished: 1,
  /** Commands of the rank's list that were posted in this run. */
  posted: 2,
} as const;

export function createFlightWords(): Int32Array {
  return new Int32Array(new SharedArrayBuffer(4 * Object.keys(words).length));
}

/** `posted`: how many commands are posted by beginning the run. */
export function beginFlight(flight: Int32Array, run: number, posted: number): void {
  flight[words.posted] = posted;
  flight[words.run] = run;
}

/** All commands before position `posted` of the list have been posted. */
export function postFlight(flight: Int32Array, posted: number): void {
  flight[words.posted] = posted;
}

export function endFlight(flight: Int32Array): void {
  flight[words.finished] = flight[words.run] ?? 0;
}

export interface FlightState {
  readonly run: number;
  readonly finished: number;
  readonly posted: number;
}

export function readFlight(flight: Int32Array): FlightState {
  return { run: at(flight, words.run), finished: at(flight, words.finished), posted: at(flight, words.posted) };
}
