/**
 * Dependences between the nodes of a draft: those that `sync` names and, for each byte, earlier conflicting accesses. A
 * write of contiguous bytes replaces the accesses that it covers, which keeps long lists cheap.
 */
import { at, invariant } from "../../support/invariant.ts";
import type { DraftNode } from "./draft.ts";
import type { Memory, Touch } from "./memory.ts";
import { regionsMeet } from "./regions-meet.ts";

interface Past {
  readonly touch: Touch;
  readonly position: number;
}

/** The accesses to one arena. */
interface History {
  writes: Past[];
  reads: Past[];
}

/**
 * By position in `nodes`: the positions of nodes that must come before it, ascending. It has all direct dependences but
 * not all transitive ones.
 */
export function dependencesOf(nodes: readonly DraftNode[], memory: Memory): readonly (readonly number[])[] {
  const positionOf = new Map(nodes.map(({ id }, position) => [id, position]));
  const histories = new Map<number, History>();
  return nodes.map(({ command, sync }, position) => {
    const before = new Set<number>();
    for (const id of sync) {
      const other = positionOf.get(id);
      invariant(other !== undefined && other < position, "sync names earlier nodes", { position, id });
      before.add(other);
    }
    const touches = memory.touches(command);
    for (const touch of touches) {
      const history = histories.get(touch.place);
      if (history === undefined) continue;
      addConflicting(history.writes, touch, before);
      if (touch.writes) addConflicting(history.reads, touch, before);
    }
    for (const touch of touches) {
      const history = histories.get(touch.place) ?? { writes: [], reads: [] };
      histories.set(touch.place, history);
      if (touch.writes && touch.dims.length === 0) {
        history.writes = notCovered(history.writes, touch);
        history.reads = notCovered(history.reads, touch);
      }
      (touch.writes ? history.writes : history.reads).push({ touch, position });
    }
    return [...before].sort((a, b) => a - b);
  });
}

function addConflicting(past: readonly Past[], touch: Touch, before: Set<number>): void {
  for (const other of past) if (regionsMeet(other.touch, touch)) before.add(other.position);
}

/** Returns the same list if nothing is covered. */
function notCovered(past: Past[], { start, end }: Touch): Past[] {
  const isCovered = ({ touch }: Past): boolean => start <= touch.start && touch.end <= end;
  return past.some(isCovered) ? past.filter((other) => !isCovered(other)) : past;
}

/** The reverse: by position, the nodes that depend on it, ascending. */
export function dependentsOf(before: readonly (readonly number[])[]): readonly (readonly number[])[] {
  const after = before.map((): number[] => []);
  for (const [position, others] of before.entries()) for (const other of others) at(after, other).push(position);
  return after;
}
