/**
 * Device memory of one rank. A failed allocation reports the requested size, what Braid holds and what the GPU has
 * free.
 */
import { fail } from "../../../diagnostics/diagnostic.ts";
import type { Checked } from "../bindings/call-error.ts";
import { CUDA_ERROR_OUT_OF_MEMORY, CUDA_SUCCESS, type DriverFunctions, type Out } from "../bindings/driver-api.ts";
import { type Gpu, out } from "../gpu.ts";
import { pinnedBlock } from "./host-blocks.ts";

export interface DeviceBlock extends Disposable {
  /** A multiple of 256; 0 for a block of no bytes. */
  readonly address: number;
  readonly bytes: number;
}

/** The parts of a Gpu that this needs. */
export interface MemoryCalls extends Pick<Gpu, "rank" | "ordinal" | "name" | "memoryBytes" | "check"> {
  readonly raw: Pick<DriverFunctions, "cuMemAlloc_v2">;
  readonly call: Pick<Checked<DriverFunctions>, "cuMemFree_v2" | "cuMemGetInfo_v2">;
}

export interface DeviceMemory {
  /** `what` names the use in messages: "workspaces of matmul". Throws `gpu-memory`. */
  readonly allocate: (bytes: number, what: string) => DeviceBlock;
  /** Total bytes of the blocks that are held. */
  readonly held: () => number;
}

export function createDeviceMemory(gpu: MemoryCalls): DeviceMemory {
  let held = 0;
  return {
    held: () => held,
    allocate: (bytes, what) => {
      if (bytes === 0) return { address: 0, bytes, [Symbol.dispose]: () => {} };
      const address: Out = [0];
      const status = gpu.raw.cuMemAlloc_v2(address, bytes);
      if (status === CUDA_ERROR_OUT_OF_MEMORY) outOfMemory(gpu, bytes, held, what);
      if (status !== CUDA_SUCCESS) gpu.check(status, "cuMemAlloc");
      held += bytes;
      return {
        address: Number(address[0]),
        bytes,
        [Symbol.dispose]: () => {
          gpu.call.cuMemFree_v2(Number(address[0]));
          held -= bytes;
        },
      };
    },
  };
}

function outOfMemory(gpu: MemoryCalls, asked: number, held: number, what: string): never {
  const free = out((value) => gpu.call.cuMemGetInfo_v2(value, [0]));
  const gib = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(2)} GiB`;
  return fail("gpu-memory", `rank ${gpu.rank} has too little GPU memory for ${what}`, {
    place: { kind: "call", text: "prepare(program)" },
    found: `${gib(asked)} requested, ${gib(held)} held by Braid, ${gib(free)} free of ${gib(gpu.memoryBytes)} on GPU ${gpu.ordinal} (${gpu.name})`,
    expected: `${gib(asked)} free`,
    help: "use smaller sizes or more devices, or end other processes on this GPU (nvidia-smi lists them)",
  });
}

/** The largest power of two, at most 256, that divides the address. */
export function addressAlignment(address: number): number {
  let alignment = 256;
  while (address % alignment !== 0) alignment /= 2;
  return alignment;
}

// Copies inputs and outputs between JavaScript's memory and the GPU, in blocks through one pinned buffer. A copy from
// pageable memory would use the driver's own staging, which pins an unbounded amount. Both directions wait until the
// bytes have arrived.

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
