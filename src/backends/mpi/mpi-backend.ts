/**
 * The MPI back end: the ranks of a world divided over processes, on the CPUs of one host or several. Every process holds
 * a block of ranks, runs them as the CPU back end does, and exchanges messages with the others.
 */
import { availableParallelism } from "node:os";
import { fail } from "../../diagnostics/diagnostic.ts";
import type { Backend } from "../backend.ts";
import type { FlightRecorder } from "../flight/flight-recorder.ts";
import { openMpiGroup } from "./mpi-group.ts";
import type { MpiMessages } from "./mpi-messages.ts";

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
  return fail({
    code: "device-count",
    message: "there are more processes than devices",
    place: { kind: "option", text: "--devices" },
    found: `${world} devices, ${size} processes`,
    expected: `at least ${size} devices: every process holds one or more`,
    help: `start ${world} processes, or give --devices ${size}`,
  });
}

function otherRanks(given: readonly number[], held: readonly number[], world: number): never {
  return fail({
    code: "device-count",
    message: "this process does not hold those ranks",
    place: { kind: "call", text: "MultiDeviceExecutor.create(source, { localRanks })" },
    found: given.join(", "),
    expected: `${held.join(", ")}, this process's ranks of ${world} devices`,
    help: `pass localRanks: joinMpi().ranksOf(${world})`,
  });
}
