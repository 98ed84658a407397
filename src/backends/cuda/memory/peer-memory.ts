/**
 * Memory that other ranks map. It is allocated once, announced to all ranks by a CUDA IPC handle, and mapped once by
 * each rank of the same host. An allocation is identified by (rank, number, generation). A released allocation is kept
 * for reuse under the same mapping. If one is too small, its replacement has the next generation, and peers unmap the
 * old one.
 */
import { CU_IPC_HANDLE_SIZE, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS } from "../bindings/driver-api.ts";
import { type Gpu, out } from "../gpu.ts";
import type { Rendezvous } from "../world.ts";
import type { DeviceBlock, DeviceMemory } from "./device-memory.ts";

/** One block of peer memory on every rank, as mapped in this process. */
export interface PeerMemory {
  /** By rank: the address of its bytes in this process; 0 if it has none, or is on another host. */
  readonly addresses: readonly number[];
  /** Frees the memory for another use. All ranks release at the same point. */
  readonly release: () => void;
}

export interface PeerHeap extends Disposable {
  /**
   * Collective: all ranks call it together, each with its own size, which may be 0. Throws `gpu-memory`,
   * `gpu-call-failed`.
   */
  readonly allocate: (bytes: number) => Promise<PeerMemory>;
  /** Unmaps peers' memory. They may free it once all ranks have done so. */
  readonly unmap: () => void;
}

interface OwnAllocation {
  readonly number: number;
  generation: number;
  block: DeviceBlock;
  inUse: boolean;
}

interface Announcement {
  readonly number: number;
  readonly generation: number;
  readonly bytes: number;
  readonly handle: Uint8Array;
}

const headerBytes = 24;

/** The driver cuts smaller allocations out of blocks of this size, and a handle shares the whole block. */
const shareableBytes = 2 << 20;

export function createPeerHeap(gpu: Gpu, memory: DeviceMemory, rendezvous: Rendezvous): PeerHeap {
  const { rank: own, hosts } = rendezvous;
  const allocations: OwnAllocation[] = [];
  /** By rank and number. */
  const mapped = new Map<string, { readonly generation: number; readonly address: number }>();
  let stale: DeviceBlock[] = [];

  const takeOwn = (asked: number): OwnAllocation => {
    const bytes = Math.ceil(asked / shareableBytes) * shareableBytes;
    const free = allocations.filter(({ inUse }) => !inUse);
    const fitting = free.find(({ block }) => block.bytes >= bytes);
    if (fitting !== undefined) return fitting;
    const [old] = free;
    if (old === undefined) {
      const made = {
        number: allocations.length,
        generation: 0,
        block: memory.allocate(bytes, "peer-visible buffers"),
        inUse: false,
      };
      allocations.push(made);
      return made;
    }
    // Freed after the peers have unmapped it.
    stale.push(old.block);
    old.generation += 1;
    old.block = memory.allocate(bytes, "peer-visible buffers");
    return old;
  };

  const announce = ({ number, generation, block }: OwnAllocation): Uint8Array => {
    const bytes = new Uint8Array(headerBytes + CU_IPC_HANDLE_SIZE);
    const view = new DataView(bytes.buffer);
    view.setUint32(0, number, true);
    view.setUint32(4, generation, true);
    view.setFloat64(8, block.bytes, true);
    if (block.bytes > 0) gpu.call.cuIpcGetMemHandle(bytes.subarray(headerBytes), block.address);
    return bytes;
  };

  const map = (rank: number, { number, generation, bytes, handle }: Announcement): number => {
    const key = `${rank}.${number}`;
    const known = mapped.get(key);
    if (known?.generation === generation) return known.address;
    if (known !== undefined && known.address !== 0) gpu.call.cuIpcCloseMemHandle(known.address);
    const address =
      bytes === 0
        ? 0
        : out((value) => gpu.call.cuIpcOpenMemHandle_v2(value, { bytes: handle }, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    mapped.set(key, { generation, address });
    return address;
  };

  const unmap = (): void => {
    for (const { address } of mapped.values()) if (address !== 0) gpu.call.cuIpcCloseMemHandle(address);
    mapped.clear();
  };

  return {
    allocate: async (bytes) => {
      const taken = takeOwn(bytes);
      taken.inUse = true;
      const announced = await rendezvous.allGather(announce(taken));
      const addresses = announced.map((message, rank) =>
        rank === own ? taken.block.address : hosts[rank] === hosts[own] ? map(rank, parse(message)) : 0,
      );
      // No rank frees or uses memory before all have mapped it.
      await rendezvous.barrier();
      for (const block of stale) block[Symbol.dispose]();
      stale = [];
      return {
        addresses,
        release: () => {
          taken.inUse = false;
        },
      };
    },
    unmap,
    [Symbol.dispose]: () => {
      unmap();
      for (const block of [...stale, ...allocations.map((allocation) => allocation.block)]) block[Symbol.dispose]();
      allocations.length = 0;
      stale = [];
    },
  };
}

function parse(message: Uint8Array): Announcement {
  const view = new DataView(message.buffer, message.byteOffset, message.byteLength);
  return {
    number: view.getUint32(0, true),
    generation: view.getUint32(4, true),
    bytes: view.getFloat64(8, true),
    handle: message.slice(headerBytes, headerBytes + CU_IPC_HANDLE_SIZE),
  };
}
