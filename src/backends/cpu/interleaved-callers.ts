/**
 * What callers do in the middle of a run if an interleaving says so: read outputs before they are complete, write
 * inputs late, or write the next run's inputs early. A correct program never allows such a moment to matter. In an
 * incorrect one these steps expose races with the caller.
 */
import type { BufferId } from "../../commands/buffer.ts";
import type { Program } from "../../commands/program.ts";
import type { CallerStep, Interleaving } from "../../machine/interleaving.ts";

export interface ScheduledCallers {
  /** Starts a run: inputs that will be written late are removed. */
  begin(): void;
  step(step: CallerStep): void;
  /** Ends the run: inputs are as they were written. */
  end(): void;
  /** What the caller read of a buffer during the last run; undefined if it reads after the run. */
  hasRead(buffer: BufferId): Uint8Array | undefined;
}

/** `bytesOf` is the memory of a buffer. */
export function createInterleavedCallers(
  program: Program,
  interleaving: Interleaving | undefined,
  bytesOf: (buffer: BufferId) => Uint8Array,
): ScheduledCallers {
  const steps = interleaving?.kind === "list" ? interleaving.steps : [];
  const late = new Set(steps.flatMap((step) => ("caller" in step && step.caller === "writes" ? [step.rank] : [])));
  const buffersOf = (rank: number, role: "input" | "output"): readonly BufferId[] =>
    program.buffers.flatMap((buffer) => (buffer.rank === rank && buffer.role === role ? [buffer.id] : []));
  const written = new Map<BufferId, Uint8Array>();
  const read = new Map<BufferId, Uint8Array>();
  const spoil = (rank: number): void => {
    for (const id of buffersOf(rank, "input")) {
      const bytes = bytesOf(id);
      written.set(id, bytes.slice());
      // Changes every element.
      for (let i = 0; i < bytes.length; i++) bytes[i] = ~(bytes[i] ?? 0);
    }
  };
  const restore = (ids: Iterable<BufferId>): void => {
    for (const id of ids) {
      const bytes = written.get(id);
      if (bytes !== undefined) bytesOf(id).set(bytes);
      written.delete(id);
    }
  };
  return {
    begin: () => {
      read.clear();
      for (const rank of late) spoil(rank);
    },
    step: ({ rank, caller }) => {
      if (caller === "overwrites") spoil(rank);
      else if (caller === "writes") restore(buffersOf(rank, "input"));
      else for (const id of buffersOf(rank, "output")) read.set(id, bytesOf(id).slice());
    },
    end: () => restore([...written.keys()]),
    hasRead: (buffer) => read.get(buffer),
  };
}
