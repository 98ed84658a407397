/**
 * A group of the ranks of one process among several: the CPU back end's threads run them, and an agent connects them
 * with the ranks of the others. Sums are made in team order by Braid's kernels, so that bits are those of one process.
 */
import type { BufferId } from "../../commands/buffer.ts";
import type { Program } from "../../commands/program.ts";
import { at, invariant } from "../../support/invariant.ts";
import type { TraceEvent } from "../../trace/event.ts";
import type { ExecuteOptions, Group, Prepared, RunReport } from "../backend.ts";
import type { PoolOptions } from "../cpu/threads/worker-pool.ts";
import { createSynchroniseQueues } from "../cpu/threads/synchronise-queues.ts";
import { openThreadedGroup } from "../cpu/threads/threaded-group.ts";
import type { FlightRecorder } from "../flight/flight-recorder.ts";
import { createAgent, type Transport } from "./agent.ts";
import type { SharedBytes } from "./mpi-messages.ts";
import { firstTag } from "./tags.ts";
import { type SplitProgram, splitProgram } from "./split/split-program.ts";

export interface MpiGroupOptions {
  readonly transport: Transport;
  /** By rank: the process that holds it. */
  readonly processOf: readonly number[];
  readonly pool: Pick<PoolOptions, "workers" | "jitter">;
  readonly blas: string | null;
  readonly flight: FlightRecorder;
}

/** All processes prepare and execute the same Programs in the same order. */
export function openMpiGroup({ transport, processOf, pool, blas, flight }: MpiGroupOptions): Group {
  const splits = new Map<Program, { readonly split: SplitProgram; readonly firstTag: number }>();
  let nextTag = firstTag;
  const threads = openThreadedGroup(pool, blas, flight, (shared, progress) => {
    const { program, memory, space } = shared;
    const known = splits.get(program);
    invariant(known !== undefined, "the program of this process was split off");
    const { buffer } = memory;
    invariant(buffer instanceof SharedArrayBuffer, "threads share their memory");
    const bytes: SharedBytes = new Uint8Array(buffer);
    const { channels } = known.split;
    const synchronise = createSynchroniseQueues(shared, progress);
    return createAgent(transport, {
      program,
      channels,
      firstTag: known.firstTag,
      progress,
      memory: bytes,
      space,
      synchronise,
    });
  });
  return {
    prepare: async (program) => {
      const split = splitProgram(program, processOf);
      const own = split.programOf(transport.rank);
      splits.set(own, { split, firstTag: nextTag });
      nextTag += split.channels.length;
      const prepared = await threads.prepare(own);
      return asWhole(
        prepared,
        split,
        (buffer) => processOf[at(program.buffers, buffer).rank] === transport.rank,
        () => splits.delete(own),
      );
    },
    close: () => threads.close(),
  };
}

/** With the buffers and commands of the whole Program. */
function asWhole(
  prepared: Prepared,
  { sources }: SplitProgram,
  isOwn: (buffer: BufferId) => boolean,
  released: () => void,
): Prepared {
  const own = (buffer: BufferId): BufferId => {
    invariant(isOwn(buffer), "buffers are of ranks of this process", { buffer });
    return buffer;
  };
  return {
    write: (buffer, bytes) => prepared.write(own(buffer), bytes),
    read: (buffer) => prepared.read(own(buffer)),
    view: (buffer) => prepared.view(own(buffer)),
    execute: async (options?: ExecuteOptions): Promise<RunReport> => {
      const report = await prepared.execute(options);
      return { ...report, trace: joined(report.trace, sources) };
    },
    release: () => {
      prepared.release();
      released();
    },
  };
}

/** One event for all that a command became. */
function joined(trace: readonly TraceEvent[], sources: SplitProgram["sources"]): readonly TraceEvent[] {
  const whole = new Map<string, TraceEvent>();
  for (const event of trace) {
    const command = at(at(sources, event.rank), event.command);
    const key = `${event.rank} ${command}`;
    const known = whole.get(key);
    const [start, end] = [Math.min(event.start, known?.start ?? Infinity), Math.max(event.end, known?.end ?? 0)];
    whole.set(key, { ...event, command, start, end });
  }
  return [...whole.values()].toSorted((a, b) => a.start - b.start);
}
