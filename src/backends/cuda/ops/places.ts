/**
 * The symbolic addresses of a Program's buffers and slots for one rank, and the memory behind them. After each
 * symmetric arena lie the slots that its rank waits on and the gates of its link kernels.
 */
import type { BufferRef, PlacedBuffer } from "../../../commands/buffer.ts";
import type { SlotId } from "../../../commands/command.ts";
import type { Program } from "../../../commands/program.ts";
import { touchesPeers } from "../../../commands/barriers.ts";
import { at, invariant } from "../../../support/invariant.ts";
import { type Address, plus, type TensorPlace, type Word } from "./address.ts";
import type { BoundTensor, DeviceMemoryNeeds } from "./device-op.ts";

export interface AddressPlaces {
  /** Of the rank's own buffers and all symmetric ones. */
  readonly addressOf: (ref: BufferRef) => TensorPlace;
  /** The slot's word, in the memory of the rank that waits. */
  readonly wordOf: (slot: SlotId) => Word;
  /** The gate of a link kernel; `command` is one of this rank's. */
  readonly gateOf: (command: number) => Address;
  readonly needs: Pick<DeviceMemoryNeeds, "in" | "out" | "copied" | "temporaryBytes" | "symmetricBytes" | "words"> & {
    readonly gates: number;
  };
}

const symmetricAlignment = 256;

export function placesOf(program: Program, rank: number): AddressPlaces {
  const bound = boundTensors(program, rank);
  const numbers = new Map([...bound.in, ...bound.out].map(({ id, number }) => [id, number]));
  const startOf = (buffer: PlacedBuffer): TensorPlace => {
    const { arena, offset } = buffer;
    if (arena === "symmetric") return { space: "symmetric", rank: buffer.rank, offset };
    invariant(buffer.rank === rank, "a rank touches only symmetric buffers of its peers", { rank, buffer });
    if (arena === "temporary") return { space: "temporary", offset };
    const tensor = numbers.get(buffer.id);
    invariant(tensor !== undefined, "every buffer of the caller has a number", { buffer });
    return { space: arena === "input" ? "in" : "out", tensor, offset: 0 };
  };
  const tensorOf = ({ name, dtype, shape, bytes, ...buffer }: PlacedBuffer): BoundTensor => ({
    role: buffer.role === "input" ? "input" : "output",
    position: buffer.position,
    ...(buffer.output === undefined ? {} : { output: buffer.output }),
    name,
    dtype,
    shape,
    bytes,
    place: startOf({ name, dtype, shape, bytes, ...buffer }),
  });
  const tensors = (side: readonly Numbered[]): readonly BoundTensor[] => side.map(({ buffer }) => tensorOf(buffer));
  const slots = slotPlaces(program);
  const gates = new Map(overLinks(program, rank).map((command, index) => [command, index]));
  return {
    addressOf: ({ buffer, offset }) => plus(startOf(at(program.buffers, buffer)), offset),
    wordOf: (slot) => ({ space: "word", rank: at(program.slots, slot).waiter, index: at(slots.places, slot) }),
    gateOf: (command) => {
      const index = gates.get(command);
      invariant(index !== undefined, "only launches over links have gates", { rank, command });
      return { space: "gate", index };
    },
    needs: {
      in: tensors(bound.in),
      out: tensors(bound.out),
      copied: program.buffers.filter((buffer) => buffer.rank === rank && isCopied(buffer)).map(tensorOf),
      temporaryBytes: at(program.ranks, rank).arenaBytes.temporary,
      symmetricBytes: program.ranks.map(({ arenaBytes }) => aligned(arenaBytes.symmetric)),
      words: slots.counts,
      gates: gates.size,
    },
  };
}

interface Numbered {
  readonly id: number;
  readonly number: number;
  readonly buffer: PlacedBuffer;
}

function boundTensors({ buffers }: Program, rank: number): { readonly [S in "in" | "out"]: readonly Numbered[] } {
  const inArena = (arena: "input" | "output"): readonly Numbered[] =>
    buffers
      .filter((buffer) => buffer.rank === rank && buffer.arena === arena)
      .map((buffer, number) => ({ id: buffer.id, number, buffer }));
  return { in: inArena("input"), out: inArena("output") };
}

function isCopied({ role, arena }: PlacedBuffer): boolean {
  return role !== "temporary" && arena !== "input" && arena !== "output";
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
  return Math.ceil(bytes / symmetricAlignment) * symmetricAlignment;
}
