/**
 * Which nodes of a draft come before which: those that `sync` names, and for each touched byte the accesses before it that conflict.
 * A write over contiguous bytes hides what it covers, so that long lists stay cheap.
 */
import { at, invariant } from "../support/invariant.ts";
import type { DraftNode } from "./draft.ts";
import type { Memory, Touch } from "./memory.ts";
import { regionsMeet } from "./regions-meet.ts";

interface Past extends Touch {
  readonly position: number;
}

/** By position in `nodes`: positions of nodes before it, ascending. Direct ones at least, not all that follow from others. */
export function dependencesOf(nodes: readonly DraftNode[], memory: Memory): readonly (readonly number[])[] {
  const positionOf = new Map(nodes.map(({ id }, position) => [id, position]));
  const pastOf = new Map<string, Past[]>();
  return nodes.map(({ command, sync }, position) => {
    const before = new Set<number>();
    for (const id of sync) {
      const other = positionOf.get(id);
      invariant(other !== undefined && other < position, "sync names nodes that stand before", { position, id });
      before.add(other);
    }
    const touches = memory.touches(command);
    for (const touch of touches) {
      for (const past of pastOf.get(touch.place) ?? []) {
        if ((past.writes || touch.writes) && regionsMeet(past, touch)) before.add(past.position);
      }
    }
    for (const touch of touches) {
      const past = pastOf.get(touch.place) ?? [];
      const kept = touch.writes && touch.dims.length === 0 ? past.filter((other) => !covers(touch, other)) : past;
      kept.push({ ...touch, position });
      pastOf.set(touch.place, kept);
    }
    return [...before].sort((a, b) => a - b);
  });
}

/** The other way round: by position, the nodes that depend on it, ascending. */
export function dependentsOf(before: readonly (readonly number[])[]): readonly (readonly number[])[] {
  const after = before.map((): number[] => []);
  for (const [position, others] of before.entries()) for (const other of others) at(after, other).push(position);
  return after;
}

function covers(outer: Touch, inner: Touch): boolean {
  return outer.start <= inner.start && inner.end <= outer.end;
}
