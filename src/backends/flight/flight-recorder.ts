/**
 * The flight recorder of a process: knows how far the ranks of every prepared Program are, and writes their records
 * when a run fails, hangs, or the caller asks. Nothing is written before that.
 */
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";
import { systemReason } from "../../support/wording.ts";
import type { FlightStanding } from "../../trace/flight/flight-record.ts";
import { beginFlight, createFlightWords, endFlight } from "../../trace/flight/flight-words.ts";
import { type FlightEntry, flightFile, type FlightMessage, type GpuWords, writeFlightFiles } from "./flight-files.ts";
import type { Flights } from "./program-flights.ts";

export interface FlightRecorder {
  /** Where records are written. */
  readonly folder: string;
  /** `gpu`: where the streams of the one rank of a GPU report, for the other thread. */
  readonly open: (flights: Flights, ranks: readonly number[], standings: Standings, gpu?: GpuWords) => Flight;
  /** Writes the records of a run that goes on. Returns null, or why it cannot. */
  readonly write: (reason: string) => string | null;
  /**
   * Writes the records of a failed run, unless the user interrupted it. Returns the error with a note that names the
   * folder; that of another rank's failure has none, because that rank says it.
   */
  readonly failed: <E>(error: E) => E | DiagnosticError;
}

/** Where the streams of a rank stand now. */
export type Standings = (rank: number) => readonly FlightStanding[];

/** A prepared Program. */
export interface Flight {
  /** By position in `ranks`. */
  readonly words: readonly Int32Array[];
  /** Begins a run. `posted`: whether all its commands are posted at once. */
  readonly begin: (posted: "all" | "one by one") => void;
  readonly end: () => void;
  readonly release: () => void;
}

export interface FlightOptions {
  /** A folder of the system's for temporary files if omitted. All ranks of a run name the same. */
  readonly folder?: string;
  /** Another thread that writes records when this one is busy. */
  readonly mirror?: (message: FlightMessage) => void;
}

export function defaultFlightFolder(run: string = String(process.pid)): string {
  return path.join(tmpdir(), `braid-flight-${run}`);
}

export function createFlightRecorder({ folder = defaultFlightFolder(), mirror }: FlightOptions = {}): FlightRecorder {
  const entries = new Map<number, FlightEntry>();
  const known = new Set<number>();
  let ids = 0;
  let runs = 0;
  const write = (reason: string, failed: boolean): string | null => {
    try {
      writeFlightFiles(folder, entries.values(), { reason, failed });
      if (failed) mirror?.({ kind: "written" });
      return null;
    } catch (error) {
      return `${folder}: ${systemReason(error)}`;
    }
  };
  /** Removes the record of an earlier run with the same folder. */
  const forget = (rank: number): void => {
    if (known.has(rank)) return;
    known.add(rank);
    try {
      rmSync(flightFile(folder, rank), { force: true });
    } catch {
      // A folder that cannot be written is reported when there is something to write.
    }
  };
  return {
    folder,
    open: ({ world, planOf, commandsOf }, ranks, standings, gpu) => {
      const own = ranks.map((rank) => {
        forget(rank);
        const words = createFlightWords();
        const shared = { rank, world, words };
        const id = ids++;
        entries.set(id, { ...shared, plan: () => planOf(rank), standings: () => standings(rank) });
        if (gpu !== undefined) mirror?.({ kind: "open", id, folder, entry: { ...shared, plan: planOf(rank) }, gpu });
        return { id, words, length: commandsOf(rank) };
      });
      return {
        words: own.map(({ words }) => words),
        begin: (posted) => {
          runs++;
          for (const { words, length } of own) beginFlight(words, runs, posted === "all" ? length : 0);
        },
        end: () => {
          for (const { words } of own) endFlight(words);
        },
        release: () => {
          for (const { id } of own) {
            entries.delete(id);
            mirror?.({ kind: "release", id });
          }
        },
      };
    },
    write: (reason) => write(reason, false),
    failed: (error) => {
      const [first, ...others] = error instanceof DiagnosticError ? error.diagnostics : [];
      if (first?.code === "interrupted") return error;
      const problem = write(first === undefined ? String(error) : `${first.code}: ${first.message}`, true);
      if (first === undefined || first.code === "rank-failed") return error;
      const note = problem === null ? flightNote(folder) : `no flight record was written: ${problem}`;
      return new DiagnosticError([{ ...first, notes: [...(first.notes ?? []), note] }, ...others]);
    },
  };
}

export function flightNote(folder: string): string {
  return `flight record: braid verify --flight ${folder}`;
}
