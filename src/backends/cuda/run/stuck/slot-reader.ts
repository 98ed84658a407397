/**
 * The words that a rank waits for, as they are while its streams are stuck: an asynchronous copy into pinned memory, on a stream that nothing else is ever on. Stream, memory
 * and addresses are there before, since making them could wait for the very streams that do not end.
 */
import { CUDA_ERROR_NOT_READY, CUDA_SUCCESS } from "../../bindings/driver-api.ts";
import type { Gpu } from "../../gpu.ts";
import type { Arenas } from "../../memory/arenas.ts";
import type { HostBlocks } from "../../memory/host-blocks.ts";

export interface SlotReader {
  /**
   * What is in a word of this rank's slots, by its address. Null where the GPU does not say within 200 ms: one that is gone, or hardware queues that stuck streams hold. Holds the thread
   * until then; never throws.
   */
  readonly read: () => ((word: number) => number) | null;
}

/** What it needs of the driver. */
export interface ReadingGpu {
  readonly raw: Pick<Gpu["raw"], "cuMemcpyDtoHAsync_v2" | "cuStreamQuery">;
}

/** Milliseconds for the copy; it takes microseconds where the GPU is well. */
const patience = 200;

export function createSlotReader(
  { raw }: ReadingGpu,
  stream: number,
  { address, bytes }: Arenas["ownSlots"],
  blocks: Pick<HostBlocks, "take">,
): SlotReader {
  const copy = blocks.take(Math.max(4, bytes));
  return {
    read: () => {
      if (raw.cuMemcpyDtoHAsync_v2(copy.address, address, bytes, stream) !== CUDA_SUCCESS) return null;
      const end = performance.now() + patience;
      let status = raw.cuStreamQuery(stream);
      while (status === CUDA_ERROR_NOT_READY && performance.now() < end) {
        sleep(1);
        status = raw.cuStreamQuery(stream);
      }
      return status === CUDA_SUCCESS ? (word) => copy.view.getUint32(word - address, true) : null;
    },
  };
}

/** Of this thread, in milliseconds: whoever is told of a run that does not end cannot wait for an event loop. */
function sleep(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
