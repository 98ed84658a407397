/** The dependences of node lists, computed once for each. */
import { at, invariant, pushTo } from "../../../support/invariant.ts";
import type { DraftNode } from "../draft.ts";
import type { DraftMemory } from "../memory/memory.ts";
import { createTouchIndex, type TouchIndex } from "../memory/touch-index.ts";
import { type Touch, touchesMeet } from "../memory/touch.ts";
import { type Past, unknownOf } from "./pasts.ts";

type Nodes = readonly DraftNode[];

/** Of drafts as they were read, which several edits start from. */
export type ReadDependences = Map<Nodes, DraftDependences | null>;

export interface KnownDependences {
  readonly of: (nodes: Nodes) => DraftDependences;
  /** `nodes` are `like` others, on other streams, which dependences do not depend on. */
  readonly equate: (nodes: Nodes, like: Nodes) => void;
}

/** For one edit. */
export function createKnownDependences(read: ReadDependences, memory: DraftMemory): KnownDependences {
  const edited: ReadDependences = new Map();
  return {
    of: (nodes) => {
      const known = read.get(nodes) ?? edited.get(nodes) ?? draftDependences(nodes, memory);
      (read.has(nodes) ? read : edited).set(nodes, known);
      return known;
    },
    equate: (nodes, like) => {
      edited.set(nodes, read.get(like) ?? edited.get(like) ?? null);
    },
  };
}

// Dependences between the nodes of a draft: those that `sync` and `pasts` name and, for each byte, earlier conflicting
// accesses. A write of contiguous bytes replaces the accesses that it covers, which keeps long lists cheap.

/**
 * A graph of vertices: the nodes by position, then a _join_ for each past. A join stands for the nodes of the past and
 * is no command: whatever depends on it depends on all of them.
 */
export interface DraftDependences {
  /** By vertex: the vertices that must come before it, ascending. All direct dependences, not all transitive ones. */
  readonly before: readonly (readonly number[])[];
  /** All vertices, each after those that must come before it. Nodes are in order of position. */
  readonly sequence: readonly number[];
  /** The number of nodes: the first join. */
  readonly nodes: number;
  /** The last node among a join's; for a node itself. */
  readonly lastOf: (vertex: number) => number;
}

/** The accesses to one arena. */
interface History {
  readonly writes: TouchIndex<Access>;
  readonly reads: TouchIndex<Access>;
}

interface Access {
  readonly touch: Touch;
  readonly position: number;
}

export function draftDependences(nodes: readonly DraftNode[], memory: DraftMemory): DraftDependences {
  const positionOf = new Map(nodes.map(({ id }, position) => [id, position]));
  const earlier = (id: number, position: number): number => {
    const other = positionOf.get(id);
    invariant(other !== undefined && other < position, "nodes rely on earlier nodes", { position, id });
    return other;
  };
  const histories = new Map<number, History>();
  const joins = joinsOf(nodes, earlier);
  const before = nodes.map(({ command, sync, pasts }, position) => {
    const own = new Set<number>();
    for (const id of sync) own.add(earlier(id, position));
    const touches = memory.touches(command);
    for (const touch of touches) {
      const history = histories.get(touch.place);
      if (history === undefined) continue;
      addConflicting(history.writes, touch, own);
      if (touch.writes) addConflicting(history.reads, touch, own);
    }
    for (const touch of touches) {
      const history = histories.get(touch.place) ?? { writes: createTouchIndex(), reads: createTouchIndex() };
      histories.set(touch.place, history);
      if (touch.writes && touch.dims.length === 0) {
        history.writes.removeWithin(touch);
        history.reads.removeWithin(touch);
      }
      (touch.writes ? history.writes : history.reads).add(touch, { touch, position });
    }
    for (const past of pasts) own.add(joins.vertexOf(past));
    return [...own].sort((a, b) => a - b);
  });
  return {
    before: [...before, ...joins.before],
    sequence: joins.sequence,
    nodes: nodes.length,
    lastOf: (vertex) => (vertex < nodes.length ? vertex : at(joins.last, vertex - nodes.length)),
  };
}

function addConflicting(index: TouchIndex<Access>, touch: Touch, before: Set<number>): void {
  index.some(touch, (other) => {
    if (touchesMeet(other.touch, touch)) before.add(other.position);
    return false;
  });
}

interface Joins {
  readonly vertexOf: (past: Past) => number;
  /** By join. */
  readonly before: readonly (readonly number[])[];
  readonly last: readonly number[];
  readonly sequence: readonly number[];
}

/** Bases have smaller vertices than the sets that contain them. */
function joinsOf(nodes: readonly DraftNode[], earlier: (id: number, position: number) => number): Joins {
  const vertices = new Map<Past, number>();
  const before: number[][] = [];
  const last: number[] = [];
  const placed = new Map<number, number[]>();
  for (const [position, { pasts }] of nodes.entries()) {
    for (const past of pasts) {
      for (const each of unknownOf(past, vertices)) {
        const members = each.items.map((id) => earlier(id, position)).sort((a, b) => a - b);
        const base = each.base === null ? undefined : vertices.get(each.base);
        const vertex = nodes.length + before.length;
        const end = Math.max(members.at(-1) ?? -1, base === undefined ? -1 : at(last, base - nodes.length));
        vertices.set(each, vertex);
        before.push(base === undefined ? members : [...members, base]);
        last.push(end);
        pushTo(placed, end, vertex);
      }
    }
  }
  return {
    vertexOf: (past) => {
      const vertex = vertices.get(past);
      invariant(vertex !== undefined, "a node's past has a join");
      return vertex;
    },
    before,
    last,
    sequence: nodes.flatMap((_, position) => [position, ...(placed.get(position) ?? [])]),
  };
}

/** The reverse: by vertex, those that depend on it, ascending. */
export function dependentsOf(before: readonly (readonly number[])[]): readonly (readonly number[])[] {
  const after = before.map((): number[] => []);
  for (const [vertex, others] of before.entries()) for (const other of others) at(after, other).push(vertex);
  return after;
}
