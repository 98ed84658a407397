/**
 * The CUDA back end: one process per GPU. Its Rendezvous connects the processes. `open` takes only this process's rank.
 */
import type { BufferId } from "../../commands/buffer.ts";
import type { Program } from "../../commands/program.ts";
import { type OptionValue, options as schema } from "../../compile/options.ts";
import { requireOptions } from "../../compile/options/resolve.ts";
import { type Diagnostic, DiagnosticError, fail } from "../../diagnostics/diagnostic.ts";
import { at, invariant } from "../../support/invariant.ts";
import type { Backend, Group, OpenOptions, Prepared } from "../backend.ts";
import { createFlightRecorder, type FlightRecorder } from "../flight/flight-recorder.ts";
import { attentionObstacle } from "./attention/availability.ts";
import type { Gpu } from "./gpu.ts";
import { defaultCacheFolder } from "./kernels/compiler.ts";
import type { TensorPlace } from "./ops/address.ts";
import { deviceOps } from "./ops/device-ops.ts";
import { programNotes } from "./ops/list-notes.ts";
import { placesOf } from "./ops/places.ts";
import type { DeviceTarget } from "./ops/planning.ts";
import { type PreparedDevice, prepareDevice } from "./prepared-device.ts";
import type { DeviceList } from "./run/prepared-list.ts";
import type { GraphUse } from "./run/runner.ts";
import { openSession, type Session } from "./session.ts";
import type { Rendezvous } from "./world.ts";

export const graphUses: readonly GraphUse[] = schema.graph.kind.choices;

export interface CudaOptions {
  readonly rendezvous: Rendezvous;
  /** `auto`, the default: replay a CUDA graph from the second run on if every rank can capture one. */
  readonly graph?: GraphUse;
  /** Seconds for NCCL to connect, and for runs that do not name a timeout; 30 if omitted. */
  readonly timeout?: OptionValue<"timeout">;
  /** Folder of the cache of compiled kernels; null for no cache. Defaults to the user's cache folder. */
  readonly cacheFolder?: string | null;
  /** Records what failed runs did; createFlightRecorder() if omitted. All ranks name the same folder. */
  readonly flight?: FlightRecorder;
}

const usualTimeout = 30;

/**
 * A back end for this process's rank, on one GPU. Throws `bad-option` and `option-unknown`. Its `open` throws
 * `device-count`, `backend-unavailable`, `gpu-unsupported` and `gpu-call-failed`.
 */
export function createCudaBackend(options: CudaOptions): Backend {
  requireOptions(["graph", "timeout"], options, ["rendezvous", "cacheFolder", "flight"]);
  return {
    name: "cuda",
    attentionObstacle: () => attentionObstacle(options.rendezvous.localRank),
    open: async (world) => openGroup(world, options),
  };
}

function openGroup({ world, localRanks }: OpenOptions, options: CudaOptions): Group {
  const { rank, worldSize } = options.rendezvous;
  if (world !== worldSize || localRanks.length !== 1 || localRanks[0] !== rank) {
    fail("device-count", "the CUDA back end holds one rank per process", {
      place: { kind: "call", text: "open({ world, localRanks })" },
      found: `world ${world}, local ranks ${localRanks.join(", ")}`,
      expected: `world ${worldSize}, local rank ${rank}`,
      help: "start one process per GPU: `braid run --on cuda` does, and so do torchrun, mpirun and srun",
    });
  }
  const group = openDeviceGroup(options);
  return {
    prepare: async (program) => {
      const list = (): DeviceList => programList(program, rank, { ...group.gpu, multiprocessors: group.gpu.smCount });
      return byBuffer(await group.prepare(list), program, rank);
    },
    close: group.close,
  };
}

/** This process's rank, for device operations that were planned before. */
export interface DeviceGroup {
  readonly gpu: Pick<Gpu, "name" | "capability" | "smCount">;
  /** Collective: all ranks call it together. `list` is called once. */
  readonly prepare: (list: () => DeviceList) => Promise<PreparedDevice>;
  readonly close: () => Promise<void>;
}

/** Throws `backend-unavailable`, `gpu-unsupported` and `gpu-call-failed`. */
export function openDeviceGroup(options: CudaOptions): DeviceGroup {
  const { rendezvous, graph = "auto", timeout = usualTimeout, cacheFolder = defaultCacheFolder() } = options;
  const { rank } = rendezvous;
  const session = openSession({ rendezvous, cacheFolder, flight: options.flight ?? createFlightRecorder() });
  let failure: string | null = null;
  return {
    gpu: session.gpu,
    prepare: async (list) => {
      if (failure !== null) brokenGroup(rank, failure);
      const prepared = await prepareDevice(session, list(), {
        graph,
        timeout: 1000 * timeout,
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
      // After a failure, streams may wait for a peer forever. The driver frees their memory when the process ends.
      if (failure !== null) return;
      await session.openedCommunicators()?.close();
      // No rank unmaps memory that a run still uses, or frees memory that a peer has mapped.
      await rendezvous.barrier();
      session.heap.unmap();
      await rendezvous.barrier();
      session[Symbol.dispose]();
    },
  };
}

/** Milliseconds for the caller to report what happened before NCCL's abort blocks this thread, possibly for seconds. */
const abortDelay = 50;

/** Notifies the other ranks and ends NCCL's waits. */
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
    expected: "a Group without a failed run",
    help: "start the processes again: streams of a failed run may wait forever",
  };
  throw new DiagnosticError([diagnostic]);
}

// A Program as device operations of one rank, and what a Group makes of them.

function programList(program: Program, rank: number, target: DeviceTarget): DeviceList {
  return {
    ops: deviceOps(program, rank, target),
    unjoined: () => deviceOps(program, rank, target, { joined: false }),
    notes: programNotes(program, rank),
  };
}

/** Reaches the buffers of the Program by their ids. */
function byBuffer(prepared: PreparedDevice, program: Program, rank: number): Prepared {
  const { addressOf } = placesOf(program, rank);
  const ownPlace = (buffer: BufferId): TensorPlace => {
    const placed = at(program.buffers, buffer);
    invariant(placed.rank === rank, "callers reach the buffers of local ranks", { rank, buffer: placed.name });
    return addressOf({ buffer, offset: 0 });
  };
  return {
    ...prepared,
    write: (buffer, bytes) => prepared.write(ownPlace(buffer), bytes),
    read: (buffer) => prepared.read(ownPlace(buffer), at(program.buffers, buffer).bytes),
    view: () => null,
  };
}
