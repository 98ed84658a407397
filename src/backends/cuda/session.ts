/**
 * Everything that one rank holds while its Group is open, shared by all its Programs: the GPU, memory, streams,
 * kernels, libraries.
 */
import type { FlightRecorder } from "../flight/flight-recorder.ts";
import { type Attentions, createAttentions } from "./attention/attentions.ts";
import {
  CU_EVENT_DEFAULT,
  CU_EVENT_DISABLE_TIMING,
  CU_STREAM_NON_BLOCKING,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
} from "./bindings/driver-api.ts";
import { type Gpu, openGpu, out } from "./gpu.ts";
import { type Compiler, createCompiler } from "./kernels/compiler.ts";
import { createGemms, type Gemms } from "./matmul/gemms.ts";
import { createDeviceMemory, createStaging, type DeviceMemory, type Staging } from "./memory/device-memory.ts";
import { createHostBlocks, type HostBlocks } from "./memory/host-blocks.ts";
import { createPeerHeap, type PeerHeap } from "./memory/peer-memory.ts";
import { type Communicators, createCommunicators } from "./nccl/communicators.ts";
import { createResources, type Resources } from "./resources.ts";
import { streamIsIdle } from "./run/stuck/wait.ts";
import { openWorldClock, type WorldClock } from "./run/world-clock.ts";
import type { Rendezvous } from "./world.ts";
import { kernelName, type KernelSource } from "./kernels/kernel-source.ts";

export interface Session extends Disposable {
  readonly gpu: Gpu;
  readonly rendezvous: Rendezvous;
  readonly memory: DeviceMemory;
  readonly heap: PeerHeap;
  readonly blocks: HostBlocks;
  readonly pool: StreamPool;
  readonly compiler: Compiler;
  readonly modules: Modules;
  /** For the host's own work: zeroing and staging. */
  readonly hostStream: number;
  /** Reads the words of slots while other streams are stuck; idle otherwise. */
  readonly slotStream: number;
  readonly staging: Staging;
  readonly flight: FlightRecorder;
  /** Libraries are loaded when a Program first needs them. */
  readonly gemms: () => Gemms;
  readonly attentions: () => Attentions;
  readonly communicators: () => Communicators;
  /** Collective: all ranks request it together, first when they prepare a Program. */
  readonly clock: () => Promise<WorldClock>;
  /** Null if none has been needed yet. */
  readonly openedCommunicators: () => Communicators | null;
}

export interface SessionOptions {
  readonly rendezvous: Rendezvous;
  readonly cacheFolder: string | null;
  readonly flight: FlightRecorder;
}

/** Throws `backend-unavailable`, `gpu-unsupported` and `gpu-call-failed`, and then holds nothing. */
export function openSession(options: SessionOptions): Session {
  const resources = createResources();
  try {
    return sessionOf(resources, options);
  } catch (error) {
    resources[Symbol.dispose]();
    throw error;
  }
}

function sessionOf(resources: Resources, { rendezvous, cacheFolder, flight }: SessionOptions): Session {
  const gpu = openGpu(rendezvous.rank, rendezvous.localRank);
  const memory = createDeviceMemory(gpu);
  const heap = resources.own(createPeerHeap(gpu, memory, rendezvous));
  const blocks = resources.own(createHostBlocks(gpu));
  const pool = resources.own(createStreamPool(gpu));
  const { rank, capability, driverVersion } = gpu;
  const compiler = createCompiler({ rank, capability, driverVersion, cacheFolder });
  const modules = resources.own(createModules(gpu, compiler));
  const hostStream = pool.stream(lowestPriority, resources);
  const slotStream = pool.stream(lowestPriority, resources);
  const wait = (): void => {
    while (!streamIsIdle(gpu, hostStream));
  };
  const staging = resources.own(createStaging(gpu, hostStream, wait));
  let gemms: Gemms | null = null;
  let attentions: Attentions | null = null;
  let clock: Promise<WorldClock> | null = null;
  let communicators: Communicators | null = null;
  return {
    gpu,
    rendezvous,
    memory,
    heap,
    blocks,
    pool,
    compiler,
    modules,
    hostStream,
    slotStream,
    staging,
    flight,
    gemms: () => (gemms ??= resources.own(createGemms(gpu, blocks, { staging, stream: hostStream, cacheFolder }))),
    attentions: () => (attentions ??= resources.own(createAttentions(gpu, blocks))),
    communicators: () => (communicators ??= createCommunicators(gpu, rendezvous)),
    clock: () => (clock ??= openWorldClock(rendezvous)),
    openedCommunicators: () => communicators,
    [Symbol.dispose]: () => resources[Symbol.dispose](),
  };
}

// CUDA streams and events, created once and lent to Programs. A stream must be idle when it is returned.

/** 0 is the highest. A GPU has few priorities; all below its lowest are the same. */
type StreamPriority = number;
export const lowestPriority: StreamPriority = Infinity;

/** Events that measure time cost more to record. */
type EventUse = "order" | "time";

interface StreamPool extends Disposable {
  /** `resources` returns it to the pool. */
  readonly stream: (priority: StreamPriority, resources: Resources) => number;
  readonly event: (use: EventUse, resources: Resources) => number;
}

export function createStreamPool(gpu: Gpu): StreamPool {
  const made: { readonly streams: number[]; readonly events: number[] } = { streams: [], events: [] };
  const events = { order: new Array<number>(), time: new Array<number>() };
  /** Keyed by the driver's number of the priority, which falls as the priority rises. */
  const streams = new Map<number, number[]>();
  const lend = (list: number[], make: () => number, resources: Resources): number => {
    const handle = list.pop() ?? make();
    resources.defer(() => list.push(handle));
    return handle;
  };
  const newStream = (level: number): number => {
    const stream = out((value) => gpu.call.cuStreamCreateWithPriority(value, CU_STREAM_NON_BLOCKING, level));
    made.streams.push(stream);
    return stream;
  };
  const newEvent = (use: EventUse): number => {
    const flags = use === "time" ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
    const event = out((value) => gpu.call.cuEventCreate(value, flags));
    made.events.push(event);
    return event;
  };
  return {
    stream: (priority, resources) => {
      const level = Math.min(gpu.priorities.least, gpu.priorities.greatest + priority);
      const free = streams.get(level) ?? [];
      streams.set(level, free);
      return lend(free, () => newStream(level), resources);
    },
    event: (use, resources) => lend(events[use], () => newEvent(use), resources),
    [Symbol.dispose]: () => {
      for (const event of made.events.splice(0)) gpu.call.cuEventDestroy_v2(event);
      for (const stream of made.streams.splice(0)) gpu.call.cuStreamDestroy_v2(stream);
    },
  };
}

interface Modules extends Disposable {
  /** A launch of the kernel with these pointers on this stream. Running it allocates nothing. */
  readonly prepareLaunch: (
    source: Omit<KernelSource, "parameters">,
    pointers: readonly number[],
    stream: number,
    blocks: HostBlocks,
  ) => () => void;
}

/** Loads compiled kernels into the GPU, each source once, and launches them with argument blocks made beforehand. */
export function createModules(gpu: Gpu, compiler: Compiler): Modules {
  const functions = new Map<string, number>();
  const modules: number[] = [];
  const functionOf = (text: string): number => {
    const known = functions.get(text);
    if (known !== undefined) return known;
    const image = compiler.compile(text);
    const module = out((value) => gpu.call.cuModuleLoadData(value, image));
    modules.push(module);
    const fn = out((value) => gpu.call.cuModuleGetFunction(value, module, kernelName));
    functions.set(text, fn);
    return fn;
  };
  return {
    prepareLaunch: ({ text, grid, block, sharedBytes = 0 }, pointers, stream, blocks) => {
      const fn = functionOf(text);
      // The driver asks before it gives a block more than 48 KiB.
      if (sharedBytes > 0)
        gpu.call.cuFuncSetAttribute(fn, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, sharedBytes);
      const parameters = pointerParameters(pointers, blocks);
      const [gridX, gridY, gridZ] = grid;
      const [blockX, blockY, blockZ] = block;
      return () => {
        const status = gpu.raw.cuLaunchKernel(
          fn,
          gridX,
          gridY,
          gridZ,
          blockX,
          blockY,
          blockZ,
          sharedBytes,
          stream,
          parameters,
          0,
        );
        if (status !== 0) gpu.check(status, "cuLaunchKernel");
      };
    },
    [Symbol.dispose]: () => {
      functions.clear();
      for (const module of modules.splice(0)) gpu.call.cuModuleUnload(module);
    },
  };
}

/** The `kernelParams` of cuLaunchKernel: the addresses of the arguments, which follow them. */
function pointerParameters(pointers: readonly number[], blocks: HostBlocks): number {
  const { address, view } = blocks.take(16 * pointers.length);
  const values = 8 * pointers.length;
  pointers.forEach((pointer, i) => {
    view.setBigUint64(8 * i, BigInt(address + values + 8 * i), true);
    view.setBigUint64(values + 8 * i, BigInt(pointer), true);
  });
  return address;
}
