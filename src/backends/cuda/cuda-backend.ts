/**
 * The CUDA back end: one process per GPU. It is made with a Rendezvous, by which the processes know each other; `open` takes this process's rank alone.
 */
import { type Diagnostic, DiagnosticError, fail } from "../../diagnostics/diagnostic.ts";
import type { Backend, Group, OpenOptions, Prepared } from "../backend.ts";
import { defaultCacheFolder } from "./kernels/compiler.ts";
import { prepareProgram } from "./prepared-program.ts";
import type { GraphUse } from "./run/runner.ts";
import { openSession, type Session } from "./session.ts";
import type { Rendezvous } from "./world.ts";

export const graphUses = ["auto", "on", "off"] as const satisfies readonly GraphUse[];

export interface CudaOptions {
  readonly rendezvous: Rendezvous;
  /** `auto`, the default: replay a CUDA graph from the second run on where every rank can capture one. */
  readonly graph?: GraphUse;
  /** Milliseconds for NCCL to connect and for runs that name no other; 30,000 if not given. */
  readonly timeout?: number;
  /** Where compiled kernels are kept; null for nowhere. The user's cache folder if not given. */
  readonly cacheFolder?: string | null;
}

const usualTimeout = 30_000;

export function createCudaBackend(options: CudaOptions): Backend {
  return { name: "cuda", open: async (world) => openGroup(world, options) };
}

function openGroup({ world, localRanks }: OpenOptions, options: CudaOptions): Group {
  const { rendezvous, graph = "auto", timeout = usualTimeout, cacheFolder = defaultCacheFolder() } = options;
  const { rank, worldSize } = rendezvous;
  if (world !== worldSize || localRanks.length !== 1 || localRanks[0] !== rank) {
    fail({
      code: "device-count",
      message: "the CUDA back end holds one rank per process",
      place: { kind: "call", text: "open({ world, localRanks })" },
      found: `world ${world}, local ranks ${localRanks.join(", ")}`,
      expected: `world ${worldSize}, local rank ${rank}`,
      help: "start one process per GPU: `braid run --on cuda` does, and so do torchrun, mpirun and srun",
    });
  }
  const session = openSession({ rendezvous, cacheFolder });
  let failure: string | null = null;
  return {
    prepare: async (program): Promise<Prepared> => {
      if (failure !== null) brokenGroup(rank, failure);
      const prepared = await prepareProgram(session, program, {
        graph,
        timeout,
        broken: (reason) => {
          if (failure !== null) return;
          failure = reason;
          giveUp(session, reason);
        },
      });
      return {
        ...prepared,
        execute: async (run) => {
          if (failure !== null) brokenGroup(rank, failure);
          return prepared.execute(run);
        },
      };
    },
    close: async () => {
      // Streams that wait for a peer never end: the driver frees what is held when the process does.
      if (failure !== null) return;
      await session.openedCommunicators()?.close();
      // Nobody unmaps what a run still uses, and nobody frees what a peer has mapped.
      await rendezvous.barrier();
      session.heap.unmap();
      await rendezvous.barrier();
      session[Symbol.dispose]();
    },
  };
}

/** Milliseconds for the caller to say what happened before NCCL's abort, which may take seconds, holds this thread. */
const abortDelay = 50;

/** Tells the other ranks and ends NCCL's waits. */
function giveUp(session: Session, reason: string): void {
  session.rendezvous.abort(reason);
  setTimeout(() => session.openedCommunicators()?.abort(), abortDelay);
}

function brokenGroup(rank: number, reason: string): never {
  const diagnostic: Diagnostic = {
    code: "rank-failed",
    message: `rank ${rank} cannot run again after a failed run`,
    place: { kind: "call", text: "execute()" },
    found: reason,
    expected: "a Group whose runs have all ended",
    help: "start the processes again: streams of a failed run may wait for ever",
  };
  throw new DiagnosticError([diagnostic]);
}
