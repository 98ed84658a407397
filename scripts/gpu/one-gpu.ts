/**
 * One GPU for measurements without a program: memory, streams, kernels, and times of calls on a stream without the
 * host's time. For a time the stream is held until all calls are issued between two timing events.
 */
import { median } from "../../bench/harness/figures.ts";
import { encodeBatch } from "../../src/backends/cuda/bind/bind-op.ts";
import type { Out } from "../../src/backends/cuda/bindings/driver-api.ts";
import type { Gpu } from "../../src/backends/cuda/gpu.ts";
import { createCompiler, defaultCacheFolder } from "../../src/backends/cuda/kernels/compiler.ts";
import { createModules, createStreamPool, lowestPriority } from "../../src/backends/cuda/session.ts";
import { createHostBlocks } from "../../src/backends/cuda/memory/host-blocks.ts";
import type { Resources } from "../../src/backends/cuda/resources.ts";
import { streamIsIdle } from "../../src/backends/cuda/run/stuck/wait.ts";

const calls = 16;
const rounds = 20;

export interface OneGpu {
  readonly gpu: Gpu;
  readonly pool: ReturnType<typeof createStreamPool>;
  readonly blocks: ReturnType<typeof createHostBlocks>;
  readonly modules: ReturnType<typeof createModules>;
  readonly stream: number;
  /** The median microseconds of one of 16 calls in a row. The stream is idle before and after. */
  readonly timeOf: (call: () => void) => number;
}

export function useGpu(gpu: Gpu, resources: Resources): OneGpu {
  const pool = resources.own(createStreamPool(gpu));
  const blocks = resources.own(createHostBlocks(gpu));
  const { rank, capability, driverVersion } = gpu;
  const compiler = createCompiler({ rank, capability, driverVersion, cacheFolder: defaultCacheFolder() });
  const modules = resources.own(createModules(gpu, compiler));
  const stream = pool.stream(lowestPriority, resources);
  const [start, stop] = [pool.event("time", resources), pool.event("time", resources)];
  const held = blocks.take(4);
  const hold = encodeBatch([{ kind: "wait", address: held.address, value: 1 }], blocks);
  const round = (call: () => void): number => {
    held.view.setUint32(0, 0, true);
    gpu.call.cuStreamBatchMemOp_v2(stream, 1, hold, 0);
    try {
      gpu.call.cuEventRecord(start, stream);
      for (let i = 0; i < calls; i++) call();
      gpu.call.cuEventRecord(stop, stream);
    } finally {
      held.view.setUint32(0, 1, true);
    }
    while (!streamIsIdle(gpu, stream));
    const milliseconds: Out = [0];
    gpu.call.cuEventElapsedTime(milliseconds, start, stop);
    return (1000 * milliseconds[0]) / calls;
  };
  const timeOf: OneGpu["timeOf"] = (call) => median(Array.from({ length: rounds }, () => round(call)));
  return { gpu, pool, blocks, modules, stream, timeOf };
}
