/**
 * The prepared Programs of an executor, one per set of sizes and scalars, within a budget of bytes. Programs that ran
 * longest ago are released first. In a world of processes every process releases the same ones at the same point,
 * because all make the same runs and count the same bytes.
 */
import type { Program } from "../commands/program.ts";
import type { PreparedEntry } from "./prepared-entry.ts";

export interface ExecutorMemory {
  /** Bytes of the Programs that are prepared: buffers, and an estimate for command lists. */
  readonly bytes: number;
  /** The sets of sizes and scalars that are prepared. */
  readonly programs: number;
  /** How many Programs were released to stay within the budget. */
  readonly released: number;
  readonly budget: number;
}

export interface PreparedEntries {
  /** The entry of that key, which then counts as the last that ran. */
  readonly take: (key: string) => PreparedEntry | undefined;
  /** Releases entries until one of that many bytes fits, or none is left. */
  readonly makeRoom: (bytes: number) => void;
  readonly add: (key: string, entry: PreparedEntry, bytes: number) => void;
  readonly releaseAll: () => void;
  readonly memory: () => ExecutorMemory;
}

export function createPreparedEntries(budget: number): PreparedEntries {
  // In order of their last runs.
  const entries = new Map<string, { readonly entry: PreparedEntry; readonly bytes: number }>();
  let held = 0;
  let released = 0;
  const release = (key: string): void => {
    const known = entries.get(key);
    if (known === undefined) return;
    entries.delete(key);
    held -= known.bytes;
    known.entry.prepared.release();
  };
  return {
    take: (key) => {
      const known = entries.get(key);
      if (known === undefined) return undefined;
      entries.delete(key);
      entries.set(key, known);
      return known.entry;
    },
    makeRoom: (bytes) => {
      for (const key of entries.keys()) {
        if (held + bytes <= budget) return;
        release(key);
        released++;
      }
    },
    add: (key, entry, bytes) => {
      entries.set(key, { entry, bytes });
      held += bytes;
    },
    releaseAll: () => {
      for (const key of entries.keys()) release(key);
    },
    memory: () => ({ bytes: held, programs: entries.size, released, budget }),
  };
}

/** Memory of a command on the host: measured, 3 KB with two worker threads, each of which has a copy. */
const commandBytes = 4096;

/**
 * The memory that this process holds for a Program. If it holds some ranks only, each counts as the largest, so that
 * all processes come to the same number.
 */
export function preparedBytes({ ranks }: Program, localRanks: readonly number[] | undefined): number {
  const buffers = ranks.map(({ arenaBytes }) => Object.values(arenaBytes).reduce((sum, bytes) => sum + bytes, 0));
  const commands = ranks.reduce((sum, rank) => sum + rank.commands.length, 0);
  const held =
    localRanks === undefined
      ? buffers.reduce((sum, bytes) => sum + bytes, 0)
      : localRanks.length * Math.max(0, ...buffers);
  return held + commandBytes * commands;
}
