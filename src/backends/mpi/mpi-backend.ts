/**
 * The MPI back end: the ranks of a world divided over processes, on the CPUs of one host or several. Every process holds
 * a block of ranks, runs them as the CPU back end does, and exchanges messages with the others.
 */
import { availableParallelism } from "node:os";
import type { BufferId } from "../../commands/buffer.ts";
import type { Program } from "../../commands/program.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { at, invariant } from "../../support/invariant.ts";
import type { TraceEvent } from "../../trace/event-table.ts";
import type { Backend, ExecuteOptions, Group, Prepared, RunReport } from "../backend.ts";
import { createSynchroniseQueues } from "../cpu/threads/synchronise-queues.ts";
import { openThreadedGroup } from "../cpu/threads/threaded-group.ts";
import type { PoolOptions } from "../cpu/threads/worker-pool.ts";
import type { FlightRecorder } from "../flight/flight-recorder.ts";
import { createAgent, type Transport } from "./agent.ts";
import { firstTag, type MpiMessages, type SharedBytes } from "./mpi-messages.ts";
import { type SplitProgram, splitOverProcesses } from "./split/split-program.ts";

export interface MpiOptions {
  readonly messages: MpiMessages;
  /** Processes on this host, which share its cores. */
  readonly processesHere: number;
  /** The file of the BLAS for GEMMs; null for the WebAssembly kernels, with the same bits everywhere. */
  readonly blas: string | null;
  readonly flight: FlightRecorder;
}

/** By rank: the process that holds it. Blocks of ranks differ in length by one at most. */
export function processesOf(ranks: number, processes: number): readonly number[] {
  return Array.from({ length: ranks }, (_, rank) => Math.floor((rank * processes) / ranks));
}

/** The ranks that a process holds. */
export function ranksHeld(processOf: readonly number[], process: number): readonly number[] {
  return processOf.flatMap((holder, rank) => (holder === process ? [rank] : []));
}

/** `open` throws `device-count` if some process would have no rank, or other ranks than it holds are asked for. */
export function createMpiBackend({ messages, processesHere, blas, flight }: MpiOptions): Backend {
  return {
    name: "mpi",
    open: async ({ world, localRanks }) => {
      if (world < messages.size) tooFewRanks(world, messages.size);
      const processOf = processesOf(world, messages.size);
      const held = ranksHeld(processOf, messages.rank);
      if (held.join() !== localRanks.join()) otherRanks(localRanks, held, world);
      return openMpiGroup({
        transport: messages,
        processOf,
        pool: { workers: Math.max(1, Math.floor(availableParallelism() / processesHere)) },
        blas,
        flight,
      });
    },
  };
}

function tooFewRanks(world: number, size: number): never {
  return fail("device-count", "there are more processes than devices", {
    place: { kind: "option", text: "--devices" },
    found: `${world} devices, ${size} processes`,
    expected: `at least ${size} devices: every process holds one or more`,
    help: `start ${world} processes, or give --devices ${size}`,
  });
}

function otherRanks(given: readonly number[], held: readonly number[], world: number): never {
  return fail("device-count", "this process does not hold those ranks", {
    place: { kind: "call", text: "MultiDeviceExecutor.create(source, { localRanks })" },
    found: given.join(", "),
    expected: `${held.join(", ")}, this process's ranks of ${world} devices`,
    help: `pass localRanks: joinMpi().ranksOf(${world})`,
  });
}

// A group of the ranks of one process among several: the CPU back end's threads run them, and an agent connects them
// with the ranks of the others. Sums are made in team order by Braid's kernels, so that bits are those of one process.

interface MpiGroupOptions {
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
      const split = splitOverProcesses(program, processOf);
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
