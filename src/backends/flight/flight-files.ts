/**
 * Writes flight records as files. The thread that watches a rank's launcher does this too, for a main thread that is
 * busy (src/launch/parent/parent-watch.ts).
 */
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import { threadId } from "node:worker_threads";
import { type FlightPlan, type FlightStanding, takeFlightRecord } from "../../trace/flight/flight-record.ts";
import { readFlight } from "../../trace/flight/flight-words.ts";

/** A rank of a prepared Program. */
export interface FlightEntry {
  readonly rank: number;
  readonly world: number;
  readonly words: Int32Array;
  readonly plan: () => FlightPlan;
  /** Where its streams stand now. */
  readonly standings: () => readonly FlightStanding[];
}

export interface FlightReason {
  readonly reason: string;
  /** Whether the run has failed, here or on another rank. */
  readonly failed: boolean;
}

export function flightFile(folder: string, rank: number): string {
  return path.join(folder, `rank-${rank}.json`);
}

/** One file for each rank, of the Program that it ran last. Throws what the file system throws. */
export function writeFlightFiles(folder: string, entries: Iterable<FlightEntry>, why: FlightReason): void {
  const latest = new Map<number, FlightEntry>();
  for (const entry of entries) {
    const other = latest.get(entry.rank);
    if (other === undefined || readFlight(other.words).run <= readFlight(entry.words).run)
      latest.set(entry.rank, entry);
  }
  if (latest.size === 0) return;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const { rank, world, words, plan, standings } of latest.values()) {
    const record = takeFlightRecord({ rank, world, words, plan: plan(), standings: standings() }, why);
    const file = flightFile(folder, rank);
    const draft = `${file}.${process.pid}-${threadId}`;
    writeFileSync(draft, JSON.stringify(record), { mode: 0o600 });
    renameSync(draft, file);
  }
}

// What a main thread tells the thread that writes flight records in its place (src/launch/parent/parent-watch.ts).

/** The words that the streams of a GPU write into pinned memory (src/backends/cuda/run/stuck/progress.ts). */
export interface GpuWords {
  readonly address: number;
  readonly streams: number;
}

export type FlightMessage =
  | {
      readonly kind: "open";
      readonly id: number;
      readonly folder: string;
      readonly entry: Omit<FlightEntry, "plan" | "standings"> & { readonly plan: FlightPlan };
      readonly gpu: GpuWords;
    }
  | { readonly kind: "release"; readonly id: number }
  /** The records of a failed run have been written. */
  | { readonly kind: "written" };

export function isFlightMessage(value: unknown): value is FlightMessage {
  return typeof value === "object" && value !== null && "kind" in value;
}
