/**
 * Pinned host memory: data that the driver reads during a call or a run (argument blocks, batches of memory operations,
 * constants) and words that the GPU writes for the host (progress). Small blocks are cut from large ones and freed all
 * at once.
 */
import { CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE } from "../bindings/driver-api.ts";
import { bytesAt } from "../bindings/native-library.ts";
import { type Gpu, out } from "../gpu.ts";

export interface HostPiece {
  /** The address on the host and, with unified addressing, on the GPU. A multiple of 64. */
  readonly address: number;
  /** The same bytes, zeroed. */
  readonly view: DataView;
}

export interface HostBlocks extends Disposable {
  readonly take: (bytes: number) => HostPiece;
}

const blockBytes = 1 << 20;
const alignment = 64;

export function createHostBlocks(gpu: Gpu): HostBlocks {
  const blocks: number[] = [];
  let current: { readonly address: number; readonly buffer: ArrayBuffer } | null = null;
  let used = 0;
  return {
    take: (bytes) => {
      if (current === null || used + bytes > current.buffer.byteLength) {
        current = pinnedBlock(gpu, Math.max(blockBytes, bytes));
        blocks.push(current.address);
        used = 0;
      }
      const piece = { address: current.address + used, view: new DataView(current.buffer, used, bytes) };
      used += Math.ceil(bytes / alignment) * alignment;
      return piece;
    },
    [Symbol.dispose]: () => {
      for (const address of blocks.splice(0)) gpu.call.cuMemFreeHost(address);
      current = null;
    },
  };
}

/** Zeroed. */
export function pinnedBlock(gpu: Gpu, bytes: number): { readonly address: number; readonly buffer: ArrayBuffer } {
  const flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
  const address = out((value) => gpu.call.cuMemHostAlloc(value, bytes, flags));
  const buffer = bytesAt(address, bytes);
  new Uint8Array(buffer).fill(0);
  return { address, buffer };
}
