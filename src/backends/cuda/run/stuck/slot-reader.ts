/**
 * Reads the words that a rank waits for while its streams are stuck, by an asynchronous copy into pinned memory on a
 * stream that nothing else uses. Stream, memory and addresses exist beforehand, because creating them could wait for
 * the stuck streams.
 */
import { CUDA_ERROR_NOT_READY, CUDA_SUCCESS } from "../../bindings/driver-api.ts";
import type { Gpu } from "../../gpu.ts";
import type { Arenas } from "../../bind/spaces.ts";
import type { HostBlocks } from "../../memory/host-blocks.ts";

export interface SlotReader {
  /**
   * Returns the word at an address of this rank's slots. Null if the GPU does not answer within 200 ms: it is gone, or
   * stuck streams hold its hardware queues. Blocks the thread meanwhile; never throws.
   */
  readonly read: () => ((word: number) => number) | null;
}

/** The driver calls that it needs. */
export interface ReadingGpu {
  readonly raw: Pick<Gpu["raw"], "cuMemcpyDtoHAsync_v2" | "cuStreamQuery">;
}

/** Milliseconds for the copy, which takes microseconds on a healthy GPU. */
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

/** Blocks this thread, in milliseconds: the code that reports a hang cannot wait for an event loop. */
function sleep(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
