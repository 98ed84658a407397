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
import { type DraftCopy, type EditContext, isEvenCopy, moveInputs, moveOutput } from "../draft/edit-ranks.ts";
import type { DraftMemory } from "../draft/memory/memory.ts";
import { createTimeline, type AccessTimeline } from "../draft/memory/timeline.ts";
import { covers, type Touch, touchesMeet } from "../draft/memory/touch.ts";
import { idsRelied } from "../draft/order/pasts.ts";
import { draftRewrite, type Rewrite } from "../rewrite.ts";

export const useInPlace: Rewrite<true> = draftRewrite(() => editDraft);

function editDraft(draft: Draft, context: EditContext): Draft {
  const editing = createEditing(draft.nodes, context.memory);
  let isChanged = false;
  for (const position of draft.nodes.keys()) {
    const place = asLocalCopy(at(editing.nodes, position), position, draft.rank, context);
    if (place === null) continue;
    if (readOriginal(editing, place) || writeAtOnce(editing, place)) isChanged = true;
  }
  return isChanged ? { ...draft, nodes: editing.nodes.flatMap((node) => node ?? []) } : draft;
}

/** The nodes, edited in place: those that were removed are null. */
interface Editing {
  readonly nodes: (DraftNode | null)[];
  readonly memory: DraftMemory;
  /** Accesses that a node no longer has may be among them. */
  readonly timeline: AccessTimeline;
  /** The ids of the nodes that others rely on. */
  readonly relied: ReadonlySet<number>;
}

function createEditing(nodes: readonly DraftNode[], memory: DraftMemory): Editing {
  const timeline = createTimeline();
  for (const [position, { command }] of nodes.entries()) timeline.add(position, memory.touches(command));
  return { nodes: [...nodes], memory, timeline, relied: idsRelied(nodes) };
}

/** A copy within this rank whose destination no peer touches. */
interface LocalCopy {
  readonly position: number;
  readonly copy: DraftCopy;
  readonly source: Touch;
  readonly destination: Touch;
  readonly isTemporary: { readonly source: boolean; readonly destination: boolean };
  /** The accesses of peers to the source. */
  readonly peers: "nothing" | "read";
}

function asLocalCopy(
  node: DraftNode | null,
  position: number,
  rank: number,
  { memory, foreign }: EditContext,
): LocalCopy | null {
  if (node === null) return null;
  const { command } = node;
  if (command.kind !== "copy" || !isEvenCopy(command)) return null;
  const [source, destination] = [at(memory.touches(command), 0), at(memory.touches(command), 1)];
  if (source.rank !== rank || destination.rank !== rank) return null;
  const onSource = foreign.meeting(source);
  if (foreign.meeting(destination).length > 0 || onSource.some(({ writes }) => writes)) return null;
  const isTemporary = {
    source: at(memory.buffers, command.source.buffer).role === "temporary",
    destination: at(memory.buffers, command.destination.buffer).role === "temporary",
  };
  return { position, copy: command, source, destination, isTemporary, peers: onSource.length > 0 ? "read" : "nothing" };
}

/** Redirects the copy's readers to the source. Not if one cannot, or if the copy preserves an older value. */
function readOriginal(editing: Editing, place: LocalCopy): boolean {
  const { position, copy, source, destination, isTemporary } = place;
  const { nodes, memory, timeline } = editing;
  if (!isTemporary.destination) return false;
  const readers = new Map<number, DraftNode>();
  let isStale = false;
  for (const other of timeline.after(position, [destination, source])) {
    const node = at(nodes, other);
    if (node === null) continue;
    const touches = memory.touches(node.command);
    if (touches.some((touch) => !touch.writes && touchesMeet(touch, destination))) {
      const command = isStale ? null : moveInputs(node.command, touches, destination, copy);
      if (command === null || touches.some((touch) => touch.writes && touchesMeet(touch, source))) return false;
      readers.set(other, { ...node, command });
    }
    const overwriting = touches.filter((touch) => touch.writes && touchesMeet(touch, destination));
    if (overwriting.some((touch) => !covers(touch, destination))) return false;
    if (overwriting.length > 0) break;
    isStale ||= touches.some((touch) => touch.writes && touchesMeet(touch, source));
  }
  removeCopy(editing, position, readers);
  return true;
}

/**
 * Redirects the source's producer to the destination, and its other readers, as far as they come before anything else
 * is written there. Not if the destination is in use before.
 */
function writeAtOnce(editing: Editing, place: LocalCopy): boolean {
  const { position, copy, source, destination, isTemporary, peers } = place;
  const { nodes, memory, timeline } = editing;
  if (!isTemporary.source || peers !== "nothing") return false;
  const touchesOf = (other: number): readonly Touch[] => {
    const node = at(nodes, other);
    return node === null ? [] : memory.touches(node.command);
  };
  const writer = find(timeline.before(position, [source]), (other) => touchesAny(touchesOf(other), source));
  const maker = writer === null ? null : at(nodes, writer);
  if (writer === null || maker === null) return false;
  const user = find(timeline.before(position, [destination]), (other) => touchesAny(touchesOf(other), destination));
  if (user !== null && user >= writer) return false;
  const command = moveOutput(maker.command, memory.touches(maker.command), source, copy);
  if (command === null) return false;
  const changed = new Map([[writer, { ...maker, command }]]);
  const back: DraftCopy = { ...copy, source: copy.destination, destination: copy.source };
  let isStale = false;
  for (const other of timeline.after(writer, [source, destination])) {
    if (other === position) continue;
    const node = at(nodes, other);
    const touches = touchesOf(other);
    const ofSource = touches.filter((touch) => touchesMeet(touch, source));
    if (node !== null && ofSource.some(({ writes }) => !writes)) {
      const overwrites = touches.some((touch) => touch.writes && touchesMeet(touch, destination));
      const moved = isStale || overwrites ? null : moveInputs(node.command, touches, source, back);
      if (moved === null) return false;
      changed.set(other, { ...node, command: moved });
    }
    if (ofSource.some((touch) => touch.writes && covers(touch, source))) break;
    if (ofSource.some(({ writes }) => writes)) return false;
    isStale ||= touches.some((touch) => touch.writes && touchesMeet(touch, destination));
  }
  removeCopy(editing, position, changed);
  return true;
}

function find(positions: Iterable<number>, is: (position: number) => boolean): number | null {
  for (const position of positions) if (is(position)) return position;
  return null;
}

/** Removes a copy that no peer can observe, and changes other nodes. */
function removeCopy(
  { nodes, memory, timeline, relied }: Editing,
  position: number,
  changed: ReadonlyMap<number, DraftNode>,
): void {
  const id = at(nodes, position)?.id;
  invariant(id !== undefined && !relied.has(id), "no other rank relies on a local copy", { id });
  nodes[position] = null;
  for (const [other, node] of changed) {
    nodes[other] = node;
    timeline.add(other, memory.touches(node.command));
  }
}

function touchesAny(touches: readonly Touch[], touch: Touch): boolean {
  return touches.some((other) => touchesMeet(other, touch));
}
