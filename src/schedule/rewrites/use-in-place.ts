/**
 * Removes a local copy if its readers can read the original, or if the original's producer can write to the copy's
 * destination. A rank's own shard is then multiplied in place, and its own partial result is written next to those of
 * its peers.
 *
 *     copy shard -> slot 0; GEMM of slot 0        ->    GEMM of shard
 *     GEMM -> slot 0; copy slot 0 -> partial 2    ->    GEMM -> partial 2
 */
import { at, invariant } from "../../support/invariant.ts";
import type { Draft, DraftNode } from "../draft/draft.ts";
import { type EditContext, editRanks } from "../draft/edit-ranks.ts";
import { type Memory, type Touch, touchesMeet } from "../draft/memory.ts";
import { type Copy, isEven, moveInputs, moveOutput } from "../draft/move-operands.ts";
import type { Rewrite } from "../rewrite.ts";

export const useInPlace: Rewrite<true> = {
  name: "in-place",
  run: (program) => editRanks(program, editDraft),
};

function editDraft(draft: Draft, context: EditContext): Draft {
  const nodes = draft.nodes.reduce((left, { id }) => {
    const position = left.findIndex((node) => node.id === id);
    const place = asLocalCopy(left, position, draft.rank, context);
    if (place === null) return left;
    return readOriginal(left, place, context.memory) ?? writeAtOnce(left, place, context.memory) ?? left;
  }, draft.nodes);
  return nodes === draft.nodes ? draft : { ...draft, nodes };
}

/** A copy within this rank whose destination no peer touches. */
interface LocalCopy {
  readonly position: number;
  readonly copy: Copy;
  readonly source: Touch;
  readonly destination: Touch;
  readonly isTemporary: { readonly source: boolean; readonly destination: boolean };
  /** The accesses of peers to the source. */
  readonly peers: "nothing" | "read";
}

function asLocalCopy(
  nodes: readonly DraftNode[],
  position: number,
  rank: number,
  { memory, foreignTouches }: EditContext,
): LocalCopy | null {
  const { command } = at(nodes, position);
  if (command.kind !== "copy" || !isEven(command)) return null;
  const [source, destination] = [at(memory.touches(command), 0), at(memory.touches(command), 1)];
  if (source.rank !== rank || destination.rank !== rank) return null;
  const foreign = foreignTouches(rank);
  const onSource = foreign.filter((touch) => touchesMeet(touch, source));
  if (foreign.some((touch) => touchesMeet(touch, destination)) || onSource.some(({ writes }) => writes)) return null;
  const isTemporary = {
    source: at(memory.buffers, command.source.buffer).role === "temporary",
    destination: at(memory.buffers, command.destination.buffer).role === "temporary",
  };
  return { position, copy: command, source, destination, isTemporary, peers: onSource.length > 0 ? "read" : "nothing" };
}

/**
 * The nodes after redirecting the copy's readers to the source; null if one cannot, or if the copy preserves an older
 * value.
 */
function readOriginal(nodes: readonly DraftNode[], place: LocalCopy, memory: Memory): readonly DraftNode[] | null {
  const { position, copy, source, destination, isTemporary } = place;
  if (!isTemporary.destination) return null;
  const readers = new Map<number, DraftNode>();
  let isStale = false;
  for (const node of nodes.slice(position + 1)) {
    const touches = memory.touches(node.command);
    if (touches.some((touch) => !touch.writes && touchesMeet(touch, destination))) {
      const command = isStale ? null : moveInputs(node.command, touches, destination, copy);
      if (command === null || touches.some((touch) => touch.writes && touchesMeet(touch, source))) return null;
      readers.set(node.id, { ...node, command });
    }
    const overwriting = touches.filter((touch) => touch.writes && touchesMeet(touch, destination));
    if (overwriting.some((touch) => !covers(touch, destination))) return null;
    if (overwriting.length > 0) break;
    isStale ||= touches.some((touch) => touch.writes && touchesMeet(touch, source));
  }
  return without(position, nodes, readers);
}

/**
 * The nodes after redirecting the source's producer to the destination; null if other nodes need the source, or the
 * destination is in use.
 */
function writeAtOnce(nodes: readonly DraftNode[], place: LocalCopy, memory: Memory): readonly DraftNode[] | null {
  const { position, copy, source, destination, isTemporary, peers } = place;
  if (!isTemporary.source || peers !== "nothing") return null;
  const writer = nodes.slice(0, position).findLastIndex(({ command }) => touchesAny(memory.touches(command), source));
  const maker = nodes[writer];
  if (maker === undefined) return null;
  const between = nodes.slice(writer, position);
  if (between.some(({ command }) => touchesAny(memory.touches(command), destination))) return null;
  for (const { command } of nodes.slice(position + 1)) {
    const touches = memory.touches(command).filter((touch) => touchesMeet(touch, source));
    if (touches.some(({ writes }) => !writes)) return null;
    if (touches.some((touch) => covers(touch, source))) break;
  }
  const command = moveOutput(maker.command, memory.touches(maker.command), source, copy);
  if (command === null) return null;
  return without(position, nodes, new Map([[maker.id, { ...maker, command }]]));
}

/** The nodes with some changed and one removed: a copy that no peer can observe. */
function without(
  position: number,
  nodes: readonly DraftNode[],
  changed: ReadonlyMap<number, DraftNode>,
): readonly DraftNode[] {
  const { id } = at(nodes, position);
  invariant(!nodes.some(({ sync }) => sync.includes(id)), "no other rank relies on a local copy", { id });
  return nodes.flatMap((node) => (node.id === id ? [] : [changed.get(node.id) ?? node]));
}

function touchesAny(touches: readonly Touch[], touch: Touch): boolean {
  return touches.some((other) => touchesMeet(other, touch));
}

function covers(outer: Touch, inner: Touch): boolean {
  return outer.dims.length === 0 && outer.start <= inner.start && inner.end <= outer.end;
}
