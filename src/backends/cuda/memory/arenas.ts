/**
 * The addresses of a Program's buffers for one rank. Its own arenas lie in device memory, every rank's symmetric arena
 * in peer memory. After each symmetric arena lie the slots that its rank waits on and the gates of its link kernels.
 */
import type { BufferId, PlacedBuffer } from "../../../commands/buffer.ts";
import type { SlotId } from "../../../commands/command.ts";
import type { Program } from "../../../commands/program.ts";
import { touchesPeers } from "../../../commands/barriers.ts";
import { at, invariant } from "../../../support/invariant.ts";
import type { Resources } from "../resources.ts";
import type { DeviceMemory } from "./device-memory.ts";
import type { PeerHeap } from "./peer-memory.ts";

export interface Arenas {
  /** For the rank's own buffers and all symmetric ones. */
  readonly bufferAddress: (buffer: BufferId) => number;
  /** The slot's word, in the memory of the rank that waits. */
  readonly slotAddress: (slot: SlotId) => number;
  /** The two words that synchronize the blocks of a link kernel; `command` is one of this rank's. */
  readonly gateAddress: (command: number) => number;
  /**
   * The slots that this rank waits on, and its gates: zeroed before the first run. Both numbers are 0 if there are
   * none.
   */
  readonly ownSlots: { readonly address: number; readonly bytes: number };
}

const privateArenas = ["input", "output", "temporary"] as const;

/** One word per slot. Slots of different ranks never share a sector. */
const slotBytes = 4;
const alignment = 256;
const gateBytes = 8;

/** Collective: all ranks call it together. Throws `gpu-memory`. */
export async function placeProgram(
  program: Program,
  rank: number,
  memory: DeviceMemory,
  heap: PeerHeap,
  resources: Resources,
): Promise<Arenas> {
  const own = at(program.ranks, rank);
  const bases = new Map(
    privateArenas.map((arena) => {
      const block = resources.own(memory.allocate(own.arenaBytes[arena], `the ${arena} buffers of the program`));
      return [arena, block.address] as const;
    }),
  );
  const slots = slotPlaces(program);
  const symmetric = (of: number): number => aligned(at(program.ranks, of).arenaBytes.symmetric);
  const slotsOf = (of: number): number => aligned(at(slots.counts, of) * slotBytes);
  const gates = new Map(overLinks(program, rank).map((command, i) => [command, i * gateBytes]));
  const wordBytes = slotsOf(rank) + gates.size * gateBytes;
  const peers = await heap.allocate(symmetric(rank) + wordBytes);
  resources.defer(peers.release);
  const address = (buffer: PlacedBuffer): number => {
    if (buffer.arena === "symmetric") return at(peers.addresses, buffer.rank) + buffer.offset;
    invariant(buffer.rank === rank, "a rank touches only symmetric buffers of its peers", { rank, buffer });
    return (bases.get(buffer.arena) ?? 0) + buffer.offset;
  };
  return {
    bufferAddress: (buffer) => address(at(program.buffers, buffer)),
    slotAddress: (slot) => {
      const { waiter } = at(program.slots, slot);
      return at(peers.addresses, waiter) + symmetric(waiter) + at(slots.places, slot) * slotBytes;
    },
    gateAddress: (command) => {
      const gate = gates.get(command);
      invariant(gate !== undefined, "only launches over links have gates", { rank, command });
      return at(peers.addresses, rank) + symmetric(rank) + slotsOf(rank) + gate;
    },
    ownSlots: { address: at(peers.addresses, rank) + symmetric(rank), bytes: wordBytes },
  };
}

/** Positions of the launches that access peers' memory. */
function overLinks(program: Program, rank: number): readonly number[] {
  return at(program.ranks, rank).commands.flatMap((command, i) => (touchesPeers(program, rank, command) ? [i] : []));
}

/** The position of every slot among the slots of the rank that waits on it. */
function slotPlaces({ ranks, slots }: Program): {
  readonly places: readonly number[];
  readonly counts: readonly number[];
} {
  const counts = ranks.map(() => 0);
  const places = slots.map(({ waiter }) => {
    const place = at(counts, waiter);
    counts[waiter] = place + 1;
    return place;
  });
  return { places, counts };
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / alignment) * alignment;
}
