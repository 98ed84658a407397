/**
 * The flight recorder of a process: holds the rings of every prepared Program, and writes their records when a run
 * fails, hangs, or the caller asks. Nothing is written before that.
 */
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";
import type { Program } from "../../commands/program.ts";
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";
import { systemReason } from "../../support/system-reason.ts";
import { at } from "../../support/invariant.ts";
import { flightPlans } from "../../trace/flight/flight-plan.ts";
import { beginFlight, createFlightRings, endFlight, tickFlight } from "../../trace/flight/flight-rings.ts";
import { type FlightEntry, flightFile, writeFlightFiles } from "./flight-files.ts";
import type { FlightMessage, GpuWords } from "./flight-message.ts";
import type { Reported } from "../../trace/flight/flight-record.ts";

export interface FlightRecorder {
  /** Where records are written. */
  readonly folder: string;
  /** The rings of ranks of a Program. `gpu`: of the one rank that this process has there. */
  readonly open: (program: Program, ranks: readonly number[], gpu?: GpuReports) => Flight;
  /** Writes the records of a run that goes on. Returns null, or why it cannot. */
  readonly write: (reason: string) => string | null;
  /** Writes the records of a failed run. Returns the error with a note that names the folder. */
  readonly failed: <E>(error: E) => E | DiagnosticError;
  /** Also writes records of a run that another rank ended. */
  readonly ended: (reason: string) => void;
}

export interface GpuReports {
  /** By stream, in this run. */
  readonly reported: () => readonly Reported[];
  /** Where these are, for the other thread. */
  readonly words: GpuWords;
}

/** A prepared Program. */
export interface Flight {
  /** By position in `ranks`. */
  readonly rings: readonly Int32Array[];
  /** Begins a run. `posted`: whether all its commands are posted at once. */
  readonly begin: (posted: "all" | "one by one") => void;
  /** Sets the recorder's clock, which the rings copy. */
  readonly tick: () => void;
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
  const origin = Date.now();
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
    open: (program, ranks, gpu) => {
      const plans = flightPlans(program);
      const world = program.ranks.length;
      const own = ranks.map((rank) => {
        forget(rank);
        const words = createFlightRings(at(program.ranks, rank).streams.length);
        const shared = { rank, world, words, origin };
        const id = ids++;
        entries.set(id, { ...shared, plan: () => plans(rank), reported: gpu?.reported ?? null });
        mirror?.({ kind: "open", id, folder, entry: { ...shared, plan: plans(rank) }, gpu: gpu?.words ?? null });
        return { id, words, length: at(program.ranks, rank).commands.length };
      });
      const clock = (): number => Date.now() - origin;
      return {
        rings: own.map(({ words }) => words),
        begin: (posted) => {
          runs++;
          const time = clock();
          for (const { words, length } of own) beginFlight(words, runs, posted === "all" ? length : 0, time);
        },
        tick: () => {
          const time = clock();
          for (const { words } of own) tickFlight(words, time);
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
      const problem = write(first === undefined ? String(error) : `${first.code}: ${first.message}`, true);
      if (first === undefined) return error;
      const note = problem === null ? flightNote(folder) : `no flight record was written: ${problem}`;
      return new DiagnosticError([{ ...first, notes: [...(first.notes ?? []), note] }, ...others]);
    },
    ended: (reason) => void write(reason, true),
  };
}

export function flightNote(folder: string): string {
  return `flight record: braid verify --flight ${folder}`;
}
