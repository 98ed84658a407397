/**
 * Times calls on a stream without the host's time. The stream is held until all calls are issued between two timing
 * events.
 */
import type { Out } from "../../src/backends/cuda/bindings/driver-api.ts";
import type { Gpu } from "../../src/backends/cuda/gpu.ts";
import type { HostBlocks } from "../../src/backends/cuda/memory/host-blocks.ts";
import type { Resources } from "../../src/backends/cuda/resources.ts";
import { encodeBatch } from "../../src/backends/cuda/bind/batch.ts";
import type { StreamPool } from "../../src/backends/cuda/run/streams/stream-pool.ts";
import { streamIsIdle } from "../../src/backends/cuda/run/stuck/wait.ts";
import { median } from "./rows.ts";

const calls = 16;
const rounds = 20;

/** Returns the median microseconds of one of 16 calls in a row. `stream` is idle before and after. */
export function createStreamTimer(
  gpu: Gpu,
  pool: StreamPool,
  blocks: HostBlocks,
  resources: Resources,
  stream: number,
): (call: () => void) => number {
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
  return (call) => median(Array.from({ length: rounds }, () => round(call)));
}
