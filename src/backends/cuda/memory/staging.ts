/**
 * Copies inputs and outputs between JavaScript's memory and the GPU, in blocks through one pinned buffer. A copy from
 * pageable memory would use the driver's own staging, which pins an unbounded amount. Both directions wait until the
 * bytes have arrived.
 */
import type { Gpu } from "../gpu.ts";
import { pinnedBlock } from "./host-blocks.ts";

export interface Staging extends Disposable {
  readonly upload: (destination: number, bytes: Uint8Array) => void;
  readonly download: (source: number, bytes: Uint8Array) => void;
}

const stagingBytes = 16 << 20;

/** `wait` returns when all work on `stream` is done. */
export function createStaging(gpu: Gpu, stream: number, wait: () => void): Staging {
  const { address, buffer } = pinnedBlock(gpu, stagingBytes);
  const staged = new Uint8Array(buffer);
  const pieces = (bytes: Uint8Array, move: (offset: number, piece: Uint8Array) => void): void => {
    for (let offset = 0; offset < bytes.length; offset += stagingBytes) {
      move(offset, bytes.subarray(offset, offset + stagingBytes));
    }
  };
  return {
    upload: (destination, bytes) =>
      pieces(bytes, (offset, piece) => {
        staged.set(piece);
        gpu.call.cuMemcpyHtoDAsync_v2(destination + offset, address, piece.length, stream);
        wait();
      }),
    download: (source, bytes) =>
      pieces(bytes, (offset, piece) => {
        gpu.call.cuMemcpyDtoHAsync_v2(address, source + offset, piece.length, stream);
        wait();
        piece.set(staged.subarray(0, piece.length));
      }),
    [Symbol.dispose]: () => gpu.call.cuMemFreeHost(address),
  };
}
