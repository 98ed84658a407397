/**
 * Writes flight records as files. The thread that watches a rank's launcher does this too, for a main thread that is
 * busy (src/launch/parent-watch.ts).
 */
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import type { FlightPlan } from "../../trace/flight/flight-plan.ts";
import { type Reported, takeFlightRecord } from "../../trace/flight/flight-record.ts";
import { readFlight } from "../../trace/flight/flight-rings.ts";

/** A rank of a prepared Program. */
export interface FlightEntry {
  readonly rank: number;
  readonly world: number;
  readonly words: Int32Array;
  /** When the recorder was made, by Date.now. */
  readonly origin: number;
  readonly plan: () => FlightPlan;
  /** What the streams of a GPU have reported in this run; null where the rings have every step. */
  readonly reported: (() => readonly Reported[]) | null;
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
  const now = Date.now();
  for (const entry of latest.values()) {
    const { rank, world, words, origin } = entry;
    const record = takeFlightRecord({ rank, world, words, origin, plan: entry.plan() }, entry.reported?.() ?? null, {
      ...why,
      now,
    });
    const file = flightFile(folder, rank);
    const draft = `${file}.${process.pid}-${now}`;
    writeFileSync(draft, JSON.stringify(record), { mode: 0o600 });
    renameSync(draft, file);
  }
}
