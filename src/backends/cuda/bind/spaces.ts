/**
 * The memory of a rank's device operations, and with it the addresses of this run: the caller's tensors and temporaries
 * in device memory, every rank's symmetric arena in peer memory. After each symmetric arena lie the slots that its rank
 * waits on and the gates of its link kernels.
 */
import { at, unreachable } from "../../../support/invariant.ts";
import type { DeviceMemory } from "../memory/device-memory.ts";
import type { PeerHeap } from "../memory/peer-memory.ts";
import type { Address } from "../ops/address.ts";
import type { BoundTensor, DeviceOps } from "../ops/device-op.ts";
import type { Resources } from "../resources.ts";
import type { StreamProgress } from "../run/stuck/progress.ts";

export type AddressOf = (address: Address) => number;

export interface Arenas {
  /** Of every space that does not belong to a stream. */
  readonly addressOf: (address: ArenaAddress) => number;
  /**
   * The slots that this rank waits on, and its gates: zeroed before the first run. Both numbers are 0 if there are
   * none.
   */
  readonly ownSlots: { readonly address: number; readonly bytes: number };
}

type StreamSpace = "progress" | "scratch" | "workspace";
type ArenaAddress = Exclude<Address, { readonly space: StreamSpace }>;

/** One word per slot. Slots of different ranks never share a sector. */
const wordBytes = 4;
const gateBytes = 8;
const alignment = 256;

/** Collective: all ranks call it together. Throws `gpu-memory`. */
export async function placeArenas(
  { rank, memory: needs }: Pick<DeviceOps, "rank" | "memory">,
  memory: DeviceMemory,
  heap: PeerHeap,
  resources: Resources,
): Promise<Arenas> {
  const place = (tensors: readonly BoundTensor[], arena: string): readonly number[] => {
    let bytes = 0;
    const offsets = tensors.map((tensor) => {
      const offset = bytes;
      bytes += aligned(tensor.bytes);
      return offset;
    });
    const block = resources.own(memory.allocate(bytes, `the ${arena} buffers of the program`));
    return offsets.map((offset) => block.address + offset);
  };
  const tensors = { in: place(needs.in, "input"), out: place(needs.out, "output") };
  const temporary = resources.own(memory.allocate(needs.temporaryBytes, "the temporary buffers of the program"));
  const slotsOf = (of: number): number => aligned(at(needs.words, of) * wordBytes);
  const ownBytes = slotsOf(rank) + needs.gates * gateBytes;
  const peers = await heap.allocate(at(needs.symmetricBytes, rank) + ownBytes);
  resources.defer(peers.release);
  const wordsOf = (of: number): number => at(peers.addresses, of) + at(needs.symmetricBytes, of);
  return {
    addressOf: (address) => {
      switch (address.space) {
        case "in":
        case "out":
          return at(tensors[address.space], address.tensor) + address.offset;
        case "temporary":
          return temporary.address + address.offset;
        case "symmetric":
          return at(peers.addresses, address.rank) + address.offset;
        case "word":
          return wordsOf(address.rank) + address.index * wordBytes;
        case "gate":
          return wordsOf(rank) + slotsOf(rank) + address.index * gateBytes;
        default:
          return unreachable(address);
      }
    },
    ownSlots: { address: wordsOf(rank), bytes: ownBytes },
  };
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / alignment) * alignment;
}

/** Adds the memory that belongs to streams. `workspaceBytes` by stream. Throws `gpu-memory`. */
export function bindStreams(
  { scratchBytes }: DeviceOps["memory"],
  workspaceBytes: readonly number[],
  arenas: Arenas,
  progress: StreamProgress,
  memory: DeviceMemory,
  resources: Resources,
): AddressOf {
  const blocks = (sizes: readonly number[], what: string): readonly number[] =>
    sizes.map((bytes) => resources.own(memory.allocate(bytes, what)).address);
  const scratch = blocks(scratchBytes, "scratch of kernels");
  const workspaces = blocks(workspaceBytes, "workspaces of matmul and attention");
  return (address) => {
    switch (address.space) {
      case "progress":
        return progress.address(address.stream);
      case "scratch":
        return at(scratch, address.stream) + address.offset;
      case "workspace":
        return at(workspaces, address.stream);
      default:
        return arenas.addressOf(address);
    }
  };
}
