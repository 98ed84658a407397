/**
 * The flight recorder of one rank in memory: per stream a ring of the last commands that were posted, begun and ended,
 * and how far the rank is. It is always on, so that an entry costs four stores and no clock. All words are in one
 * Int32Array, which another thread may read at any time.
 */
import { at } from "../../support/invariant.ts";

/** posted: handed to its stream. begun: its stream has reached it; for a transfer, its rank has arrived. */
export const flightSteps = ["posted", "begun", "ended"] as const;
export type FlightStep = (typeof flightSteps)[number];

export const steps = { posted: 0, begun: 1, ended: 2 } as const satisfies Readonly<Record<FlightStep, number>>;

const header = {
  /** The run in progress, or the last one; from 1. */
  run: 0,
  /** The last run that ended. */
  finished: 1,
  /** Commands of the rank's list that were posted in this run. */
  posted: 2,
  /** Milliseconds since the recorder was made, as of the last tick. */
  clock: 3,
} as const;
const headerWords = 4;

/** A power of two. */
const ringEntries = 32;
/** Command and step, run, clock. */
const entryWords = 3;
const ringWords = 1 + ringEntries * entryWords;

export function createFlightRings(streams: number): Int32Array {
  return new Int32Array(new SharedArrayBuffer(4 * (headerWords + ringWords * streams)));
}

export function ringOf(stream: number): number {
  return headerWords + ringWords * stream;
}

/** `ring` is one of `ringOf`. Only one thread at a time writes a ring. */
export function noteStep(words: Int32Array, ring: number, step: number, command: number): void {
  const count = words[ring] ?? 0;
  const entry = ring + 1 + (count & (ringEntries - 1)) * entryWords;
  words[entry] = (command << 2) | step;
  words[entry + 1] = words[header.run] ?? 0;
  words[entry + 2] = words[header.clock] ?? 0;
  words[ring] = (count + 1) | 0;
}

/** `posted`: how many commands are posted by beginning the run. */
export function beginFlight(words: Int32Array, run: number, posted: number, clock: number): void {
  words[header.posted] = posted;
  words[header.clock] = clock;
  words[header.run] = run;
}

export function tickFlight(words: Int32Array, clock: number): void {
  words[header.clock] = clock;
}

/** All commands before position `posted` of the list have been posted. */
export function postFlight(words: Int32Array, posted: number): void {
  words[header.posted] = posted;
}

export function endFlight(words: Int32Array): void {
  words[header.finished] = words[header.run] ?? 0;
}

export interface FlightEntry {
  readonly step: FlightStep;
  readonly command: number;
  readonly run: number;
  /** In milliseconds of the recorder. */
  readonly clock: number;
}

export interface FlightState {
  readonly run: number;
  readonly finished: number;
  readonly posted: number;
  readonly clock: number;
  /** By stream, oldest first. */
  readonly streams: readonly (readonly FlightEntry[])[];
}

export function readFlight(words: Int32Array): FlightState {
  const streams = Array.from({ length: (words.length - headerWords) / ringWords }, (_, stream) =>
    readRing(words, ringOf(stream)),
  );
  return {
    run: at(words, header.run),
    finished: at(words, header.finished),
    posted: at(words, header.posted),
    clock: at(words, header.clock),
    streams,
  };
}

function readRing(words: Int32Array, ring: number): readonly FlightEntry[] {
  const count = at(words, ring);
  return Array.from({ length: ringEntries }, (_, back) => ring + 1 + ((count + back) & (ringEntries - 1)) * entryWords)
    .filter((entry) => at(words, entry + 1) > 0)
    .map((entry) => ({
      step: at(flightSteps, at(words, entry) & 3),
      command: at(words, entry) >>> 2,
      run: at(words, entry + 1),
      clock: at(words, entry + 2),
    }));
}
