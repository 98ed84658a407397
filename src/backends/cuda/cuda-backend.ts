/**
 * The CUDA back end: one process per GPU. Its Rendezvous connects the processes. `open` takes only this process's rank.
 */
import type { BufferId } from "../../commands/buffer.ts";
import type { Program } from "../../commands/program.ts";
import { type OptionValue, options as schema } from "../../compile/options.ts";
import { requireOptions } from "../../compile/options/resolve.ts";
import { type Diagnostic, DiagnosticError, fail } from "../../diagnostics/diagnostic.ts";
import { at, invariant, unreachable } from "../../support/invariant.ts";
import type { Backend, Group, OpenOptions, Prepared } from "../backend.ts";
import { createFlightRecorder, type FlightRecorder } from "../flight/flight-recorder.ts";
import { attentionObstacle } from "./attention/availability.ts";
import type { Gpu } from "./gpu.ts";
import { defaultCacheFolder } from "./kernels/compiler.ts";
import type { TensorPlace, Address } from "./ops/address.ts";
import { deviceOps } from "./ops/device-ops.ts";
import { programNotes, commandPlace } from "./ops/list-notes.ts";
import { placesOf } from "./ops/places.ts";
import type { DeviceTarget } from "./ops/planning.ts";
import { type DeviceList, prepareList } from "./run/prepared-list.ts";
import { type GraphUse, createRunner, type RunnerOptions } from "./run/runner.ts";
import { openSession, type Session } from "./session.ts";
import { type Rendezvous, CommonError, rankName } from "./world.ts";
import { type Arenas, placeArenas } from "./bind/spaces.ts";
import { createResources, type Resources } from "./resources.ts";
import { streamIsIdle, waitUntil } from "./run/stuck/wait.ts";
import type { NcclCall } from "./nccl/plan-builder.ts";
import type { DeviceOp, DeviceOps } from "./ops/device-op.ts";

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
    attentionObstacle: (gradientHeads) => attentionObstacle(options.rendezvous.localRank, gradientHeads),
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

/* A rank's device operations prepared: memory placed, kernels compiled, slots zeroed on all ranks. */

/** `timeout` also applies to connecting NCCL and to zeroing slots. */
type PrepareOptions = RunnerOptions;

interface PreparedDevice extends Pick<Prepared, "execute" | "release"> {
  /** Copies bytes into this rank's memory. */
  readonly write: (place: TensorPlace, bytes: Uint8Array) => void;
  /** A copy of bytes of this rank's memory. */
  readonly read: (place: TensorPlace, bytes: number) => Uint8Array;
}

/** Collective: all ranks call it together. */
async function prepareDevice(session: Session, list: DeviceList, options: PrepareOptions): Promise<PreparedDevice> {
  const resources = createResources();
  try {
    return await prepareWith(session, list, options, resources);
  } catch (error) {
    resources[Symbol.dispose]();
    throw error;
  }
}

async function prepareWith(
  session: Session,
  list: DeviceList,
  options: PrepareOptions,
  resources: Resources,
): Promise<PreparedDevice> {
  const { gpu, rendezvous, memory, heap, staging } = session;
  gpu.makeCurrent();
  const { ops, notes } = list;
  await requireReachable(list, rendezvous);
  const arenas = await placeArenas(ops, memory, heap, resources);
  const communicators =
    ops.teams.length === 0 ? new Map() : await session.communicators().open(ops.teams, options.timeout);
  const prepared = prepareList(session, list, arenas, communicators, resources);
  await zeroSlots(session, arenas, options.timeout);
  await rendezvous.barrier();
  const runner = createRunner(session, notes, prepared, await session.clock(), resources, options);
  let released = false;
  return {
    write: (place, bytes) => staging.upload(arenas.addressOf(place), bytes),
    read: (place, count) => {
      const bytes = new Uint8Array(count);
      staging.download(arenas.addressOf(place), bytes);
      return bytes;
    },
    execute: (run) => runner(run ?? {}),
    release: () => {
      if (released) return;
      released = true;
      resources[Symbol.dispose]();
    },
  };
}

async function zeroSlots(
  { gpu, rendezvous, hostStream }: Session,
  { ownSlots }: Arenas,
  timeout: number,
): Promise<void> {
  if (ownSlots.bytes === 0) return;
  gpu.call.cuMemsetD8Async(ownSlots.address, 0, ownSlots.bytes, hostStream);
  await waitUntil(() => streamIsIdle(gpu, hostStream), {
    at: performance.now() + timeout,
    signal: rendezvous.signal,
    expired: () => busyGpu(gpu.rank, timeout),
  });
}

function busyGpu(rank: number, timeout: number): never {
  return fail("timed-out", `the GPU of rank ${rank} does not answer`, {
    place: { kind: "call", text: "prepare(program)" },
    found: `a memset that takes longer than ${timeout} ms`,
    expected: "an idle GPU",
    help: "check for other processes on this GPU (nvidia-smi lists them)",
  });
}

/*
 * Refuses programs that copy or signal between GPUs of different hosts, whose memory CUDA cannot map. NCCL's transfers
 * are no such commands.
 */

/** A command that reaches the memory of `peer`, to signal it or for data. */
interface Crossing {
  readonly command: number;
  readonly peer: number;
  readonly signals: boolean;
}

/** The first command of the rank that reaches memory of another host. */
export function firstCrossing(
  { rank, ops }: Pick<DeviceOps, "rank" | "ops">,
  hosts: readonly number[],
): Crossing | null {
  for (const op of ops) {
    for (const address of addressesOf(op)) {
      if (address.space !== "symmetric" && address.space !== "word") continue;
      if (hosts[address.rank] === hosts[rank]) continue;
      return { command: op.command, peer: address.rank, signals: address.space === "word" };
    }
  }
  return null;
}

type World = Pick<Rendezvous, "rank" | "hosts" | "hostNames" | "allGather">;

/** Collective: all ranks call it together, and fail together, for the lowest such rank. Throws `gpu-unsupported`. */
export async function requireReachable(list: DeviceList, world: World): Promise<void> {
  const { hosts, hostNames } = world;
  if (hostNames.length <= 1) return;
  const own = describe(list, world);
  const all = await world.allGather(new TextEncoder().encode(own === null ? "" : JSON.stringify(own)));
  const rank = all.findIndex(({ length }) => length > 0);
  if (rank < 0) return;
  const [stream, command, found] = readDescription(at(all, rank));
  const perHost = hosts.filter((host) => host === 0).length;
  throw new CommonError([
    {
      code: "gpu-unsupported",
      message: "the program reaches memory of GPUs on another host",
      place: { kind: "command", rank, stream, text: command },
      found,
      expected: "copies and signals within a host, NCCL between hosts",
      help: `lower it with --devices-per-host ${perHost}, so that NCCL moves data between hosts, or with --backend nccl`,
    },
  ]);
}

type Description = readonly [stream: number, command: string, found: string];

function describe({ ops, unjoined, notes }: DeviceList, { rank, hosts, hostNames }: World): Description | null {
  if (firstCrossing(ops, hosts) === null) return null;
  // Joined operations have the number of their first command.
  const crossing = firstCrossing(unjoined(), hosts);
  invariant(crossing !== null, "joining commands adds no addresses", { rank });
  const { command, peer, signals } = crossing;
  const [own, other] = [rankName(rank, { hosts, hostNames }), rankName(peer, { hosts, hostNames })];
  const { stream, text } = commandPlace(notes, command);
  return [stream, text, `${own} ${signals ? "signals" : "reaches the memory of"} ${other}`];
}

/** Written by a process of the same world. */
function readDescription(bytes: Uint8Array): Description {
  const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
  const [stream, command, found] = Array.isArray(value) ? value.map(String) : [];
  return [Number(stream ?? 0), command ?? "", found ?? ""];
}

// The addresses that a device operation names, its own memory included.

function addressesOf(op: DeviceOp): readonly Address[] {
  switch (op.kind) {
    case "copy":
    case "copy2d":
      return [op.to, op.from];
    case "batch":
      return op.operations.map(({ address }) => address);
    case "launch":
      return op.parameters.filter((parameter) => typeof parameter !== "number");
    case "gemm":
      return [op.a, op.b, op.c, op.bias, op.addend ?? null, ...(op.scales ?? [])].filter((address) => address !== null);
    case "attention":
      return [...op.operands, op.scratch];
    case "transfer":
      return op.calls.flatMap(callAddresses);
    case "record":
    case "wait":
      return [];
    default:
      return unreachable(op);
  }
}

function callAddresses(call: NcclCall<Address>): readonly Address[] {
  return "piece" in call ? [call.piece] : [call.from, call.to];
}
