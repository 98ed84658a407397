/**
 * Times cuGraphLaunch on the host, by the kind of nodes, their number and their branches: the part of a replay's host
 * time that is not Braid's. Also times a batch of waits on the GPU. Medians on rank 0's GPU, idle before each launch.
 */
import { setTimeout } from "node:timers/promises";
import { type Gpu, openGpu } from "../../src/backends/cuda/gpu.ts";
import { kernelName } from "../../src/backends/cuda/kernels/kernel-source.ts";
import { createDeviceMemory, type DeviceMemory } from "../../src/backends/cuda/memory/device-memory.ts";
import { createPeerHeap } from "../../src/backends/cuda/memory/peer-memory.ts";
import { createResources } from "../../src/backends/cuda/resources.ts";
import { type CapturedGraph, captureGraph } from "../../src/backends/cuda/run/runner.ts";
import type { ProgressWord, Word } from "../../src/backends/cuda/ops/address.ts";
import { encodeBatch } from "../../src/backends/cuda/bind/bind-op.ts";
import {
  type MemoryOperation,
  memoryOperations,
  type StreamOperation,
} from "../../src/backends/cuda/ops/memory-operations.ts";
import { lowestPriority } from "../../src/backends/cuda/session.ts";
import { streamIsIdle } from "../../src/backends/cuda/run/stuck/wait.ts";
import { at } from "../../src/support/invariant.ts";
import { median } from "../../bench/harness/figures.ts";
import { type PartContext, type Row, rowOf } from "../../bench/harness/rows.ts";
import { useGpu } from "./one-gpu.ts";

const counts = [1, 4, 16, 64] as const;
const branchCounts = [1, 2, 4, 8] as const;
const writes = 16;
const batchSizes = [1, 2, 4, 16] as const;
const launches = 200;
/** Peers of 2, 4 and 8 ranks. */
const waitCounts = [1, 3, 7] as const;

/** Milliseconds of pause before a launch. */
const pauses = [0, 1, 10] as const;
const pausedLaunches = 30;

export async function* graphRows({ world }: PartContext): AsyncGenerator<Row> {
  const gpu = openGpu(world.rank, world.localRank);
  const resources = createResources();
  const memory = createDeviceMemory(gpu);
  const heap = resources.own(createPeerHeap(gpu, memory, world));
  const { addresses } = await heap.allocate(4096);
  if (world.rank === 0) yield* rows(gpu, memory, addresses[1] ?? at(addresses, 0));
  await world.barrier();
  heap.unmap();
  await world.barrier();
  resources[Symbol.dispose]();
}

/** `peer`: the address of 4 KiB on another GPU, if there is one. */
async function* rows(gpu: Gpu, deviceMemory: DeviceMemory, peer: number): AsyncGenerator<Row> {
  const resources = createResources();
  const { pool, blocks, modules, stream: first, timeOf } = useGpu(gpu, resources);
  const memory = resources.own(deviceMemory.allocate(4096, "a measurement of graphs"));
  const others = Array.from({ length: Math.max(...branchCounts) - 1 }, () => pool.stream(lowestPriority, resources));
  const streams = [first, ...others];
  const events = streams.map(() => pool.event("order", resources));
  const empty = `extern "C" __global__ void ${kernelName}() {}`;
  const write = { kind: "write", address: memory.address, value: 1 } as const;
  /** A node of several operations. */
  const batchOf = (operations: readonly MemoryOperation<number>[]): ((stream: number) => () => void) => {
    const batch = encodeBatch(operations, blocks);
    return (stream) => () => gpu.call.cuStreamBatchMemOp_v2(stream, operations.length, batch, 0);
  };

  /** One node on the stream. */
  const nodes: Readonly<Record<string, (stream: number) => () => void>> = {
    "empty kernels": (stream) =>
      modules.prepareLaunch({ text: empty, grid: [1, 1, 1], block: [32, 1, 1] }, [], stream, blocks),
    "copies of 1 KiB": (stream) => () =>
      gpu.call.cuMemcpyDtoDAsync_v2(memory.address + 2048, memory.address + 1024, 1024, stream),
    "copies of 1 KiB from a peer": (stream) => () =>
      gpu.call.cuMemcpyDtoDAsync_v2(memory.address + 2048, peer + 1024, 1024, stream),
    "writes of memory": batchOf([write]),
    "writes of a peer's memory": batchOf([{ ...write, address: peer }]),
  };

  const graphOf = (node: (stream: number) => () => void, count: number, branches: number): Promise<CapturedGraph> => {
    const used = streams.slice(0, branches);
    const actions = used.map(node);
    return captureGraph(gpu, first, async () => {
      gpu.call.cuEventRecord(at(events, 0), first);
      for (const stream of used.slice(1)) gpu.call.cuStreamWaitEvent(stream, at(events, 0), 0);
      for (let i = 0; i < count; i++) at(actions, i % branches)();
      for (const [i, stream] of used.entries()) {
        if (i === 0) continue;
        gpu.call.cuEventRecord(at(events, i), stream);
        gpu.call.cuStreamWaitEvent(first, at(events, i), 0);
      }
    });
  };

  /** Median microseconds of a launch, each after a pause of `pause` milliseconds. */
  const launchTime = async (graph: CapturedGraph, count: number, pause: number): Promise<number> => {
    const times: number[] = [];
    for (let i = 0; i < count; i++) {
      if (pause > 0) await setTimeout(pause);
      const start = performance.now();
      graph.launch();
      times.push(1000 * (performance.now() - start));
      while (!streamIsIdle(gpu, first));
    }
    return median(times);
  };

  /** Median microseconds of a launch of `count` nodes, distributed over `branches` branches. */
  const cost = async (node: (stream: number) => () => void, count: number, branches: number): Promise<number> => {
    const graph = await graphOf(node, count, branches);
    const time = await launchTime(graph, launches, 0);
    graph[Symbol.dispose]();
    return time;
  };

  for (const [name, node] of Object.entries(nodes)) {
    yield await rowOf(`host time of a graph of ${name}, one after the other`, async () => {
      const texts: string[] = [];
      for (const count of counts) texts.push(`${count}: ${(await cost(node, count, 1)).toFixed(1)} us`);
      return texts.join(", ");
    });
    yield await rowOf(`host time of a graph of 16 ${name}, on branches`, async () => {
      const texts: string[] = [];
      for (const branches of branchCounts) {
        texts.push(`${branches}: ${(await cost(node, 16, branches)).toFixed(1)} us`);
      }
      return texts.join(", ");
    });
  }
  for (const [name, node] of Object.entries(nodes)) {
    yield await rowOf(`host time of a graph of 8 ${name} on 2 branches, after a pause`, async () => {
      const graph = await graphOf(node, 8, 2);
      const texts: string[] = [];
      for (const pause of pauses) {
        texts.push(`${pause} ms: ${(await launchTime(graph, pausedLaunches, pause)).toFixed(1)} us`);
      }
      graph[Symbol.dispose]();
      return texts.join(", ");
    });
  }
  yield await rowOf("host time of a graph of 16 writes of memory, in nodes of several", async () => {
    const texts: string[] = [];
    for (const size of batchSizes) {
      const node = batchOf(Array.from({ length: size }, () => write));
      texts.push(`${size}: ${(await cost(node, writes / size, 1)).toFixed(1)} us`);
    }
    return texts.join(", ");
  });
  yield await rowOf("host time of a graph of signals that come at once", async () => {
    // As in a command list: the signal, and its wait between progress reports.
    const word = wordAt(0);
    const both = memoryOperations([
      { kind: "signal", word },
      { kind: "wait", word, progress: progressWord, says: 1 },
    ]);
    const placed = (operations: typeof both) => placedAt(operations, memory.address + 128, memory.address + 64);
    const node = batchOf(placed(both));
    const bare = batchOf(placed(both.filter(({ address }) => address.space === "word")));
    const texts: string[] = [];
    for (const count of counts) {
      const [all, without] = [await cost(node, count, 1), await cost(bare, count, 1)];
      texts.push(`${count}: ${all.toFixed(1)} us, ${without.toFixed(1)} without the words`);
    }
    return texts.join("; ");
  });
  yield await rowOf("time on the stream of a batch of waits whose signals have come", () => {
    // In host memory, like the progress words of streams.
    const progress = blocks.take(4).address;
    return waitCounts
      .map((count) => {
        const words = Array.from({ length: count }, (_, i) => wordAt(i));
        const signals = words.map((word): StreamOperation => ({ kind: "signal", word }));
        const waits = words.map((word, i): StreamOperation => ({
          kind: "wait",
          word,
          progress: progressWord,
          says: i + 1,
        }));
        const [both, alone] = [[...signals, ...waits], signals].map((operations) =>
          timeOf(batchOf(placedAt(memoryOperations(operations), memory.address + 256, progress))(first)),
        );
        return `${count}: ${((both ?? NaN) - (alone ?? NaN)).toFixed(1)} us`;
      })
      .join(", ");
  });
  resources[Symbol.dispose]();
}

const progressWord: ProgressWord = { space: "progress", stream: 0 };

function wordAt(index: number): Word {
  return { space: "word", rank: 0, index };
}

/** `words`: where the words of slots begin. */
function placedAt(
  operations: readonly MemoryOperation[],
  words: number,
  progress: number,
): readonly MemoryOperation<number>[] {
  return operations.map((each) => ({
    ...each,
    address: each.address.space === "word" ? words + 4 * each.address.index : progress,
  }));
}
