/**
 * Places every buffer of a rank in its arena. Only temporaries share bytes, and only if the free of one comes before
 * the alloc of the other on the same stream (lives.ts), or through the caller's stream.
 *
 * The temporaries of one arena and stream are placed together, in the lowest of several stacks (stack-lives.ts). The
 * order of allocs and frees alone determines which stacks are tried, so smaller buffers with the same lives never need
 * a larger arena.
 */
import { fail } from "../../../diagnostics/diagnostic.ts";
import { makeId } from "../../../support/ids.ts";
import { at } from "../../../support/invariant.ts";
import type { Arena, BufferId, PlacedBuffer } from "../../buffer.ts";
import type { CommandList, UnlinkedCommand } from "../../command-list.ts";
import { type Life, livesOf, nestStays, type Stay } from "./lives.ts";
import { stackLives } from "./stack-lives.ts";

/** Every buffer starts at a multiple of this, for vector loads and for CUDA's libraries. */
export const bufferAlignment = 256;

export interface RankLayout {
  /** In order of the rank's ids; `id` counts over all ranks. */
  readonly buffers: readonly PlacedBuffer[];
  readonly arenaBytes: { readonly [A in Arena]: number };
}

/**
 * The layouts of all lists. `firstIds[i]` is the id of buffer 0 of list i. Buffers in `peerVisible[i]` (ids of the list)
 * go to the symmetric arena. A temporary that is allocated more than once keeps its place from its first alloc to its
 * last free. Lists of one class mostly have one layout, which is made once.
 */
export function layOutRanks(
  lists: readonly CommandList[],
  firstIds: readonly number[],
  peerVisible: readonly ReadonlySet<BufferId>[],
): readonly RankLayout[] {
  const known = new Map<
    CommandList["buffers"],
    { readonly list: CommandList; readonly visible: string; readonly places: Places }
  >();
  return lists.map((list, i) => {
    const own = at(peerVisible, i);
    const visible = [...own].sort((a, b) => a - b).join(" ");
    const alike = known.get(list.buffers);
    const isKnown = alike !== undefined && alike.visible === visible && ordersMemoryAlike(alike.list, list);
    const places = isKnown ? alike.places : placesOf(list, own);
    if (!isKnown) known.set(list.buffers, { list, visible, places });
    const { arenas, offsets, arenaBytes } = places;
    const { rank } = list;
    const first = at(firstIds, i);
    const buffers = list.buffers.map((buffer, number): PlacedBuffer => ({
      ...buffer,
      id: makeId<BufferId>(first + buffer.id),
      arena: at(arenas, number),
      rank,
      offset: at(offsets, number),
    }));
    return { buffers, arenaBytes };
  });
}

/** Whether two lists of the same buffers agree in all that a layout depends on. Those recorded at once share it. */
function ordersMemoryAlike(a: CommandList, b: CommandList): boolean {
  const areEqual = (own: UnlinkedCommand, other: UnlinkedCommand | undefined): boolean =>
    own === other || (other !== undefined && !ordersMemory(own) && !ordersMemory(other));
  return a.commands.length === b.commands.length && a.commands.every((own, i) => areEqual(own, b.commands[i]));
}

function ordersMemory({ kind }: UnlinkedCommand): boolean {
  return kind === "alloc" || kind === "free" || kind === "recordEvent" || kind === "waitEvent";
}

/** Where the buffers of a list lie, by their ids in the list. */
interface Places {
  readonly arenas: readonly Arena[];
  readonly offsets: readonly number[];
  readonly arenaBytes: RankLayout["arenaBytes"];
}

function placesOf(list: CommandList, peerVisible: ReadonlySet<BufferId>): Places {
  const arenaBytes: { [A in Arena]: number } = { input: 0, output: 0, temporary: 0, symmetric: 0 };
  const arenas = list.buffers.map((buffer): Arena => (peerVisible.has(buffer.id) ? "symmetric" : buffer.arena));
  const placed = new Map<BufferId, number>();
  const reserve = (arena: Arena, bytes: number): number => {
    const offset = arenaBytes[arena];
    arenaBytes[arena] += bytes;
    return offset;
  };
  for (const { arena, lives } of nestStays(list, livesOf(list, arenas))) {
    const { bytes, place } = stackOf(list, lives);
    place(reserve(arena, bytes), placed);
  }
  const offsets = list.buffers.map(({ id, bytes }) => placed.get(id) ?? reserve(at(arenas, id), aligned(bytes)));
  if (!arenas.every((arena) => Number.isSafeInteger(arenaBytes[arena]))) tooLarge(list);
  return { arenas, offsets, arenaBytes };
}

/** Offsets and sizes are exact up to 2^53. */
function tooLarge({ rank, buffers }: CommandList): never {
  const { name, dtype, shape } = at(
    buffers.toSorted((a, b) => b.bytes - a.bytes),
    0,
  );
  return fail("bad-extent", "the tensors are too large", {
    place: { kind: "option", text: "sizes (--set, --sizes)" },
    found: `${name}, ${dtype} [${shape.join(", ")}], on rank ${rank}`,
    expected: "at most 2^53 - 1 bytes for all tensors of a rank",
    help: "choose smaller sizes",
  });
}

interface Placement {
  readonly bytes: number;
  /** Places the buffers from `start` on. */
  readonly place: (start: number, offsets: Map<BufferId, number>) => void;
}

function stackOf(list: CommandList, lives: readonly (Life | Stay)[]): Placement {
  const own = lives.map((life): Placement => {
    if ("lives" in life) return stackOf(list, life.lives);
    const { buffer } = life;
    return {
      bytes: aligned(at(list.buffers, buffer).bytes),
      place: (start, offsets) => void offsets.set(buffer, start),
    };
  });
  const stack = stackLives(
    lives,
    own.map(({ bytes }) => bytes),
  );
  return {
    bytes: stack.bytes,
    place: (start, offsets) => {
      for (const [i, { place }] of own.entries()) place(start + at(stack.offsets, i), offsets);
    },
  };
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / bufferAlignment) * bufferAlignment;
}
