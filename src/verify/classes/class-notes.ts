/**
 * Whether a correct Program may get notes (explain/notes.ts): a needless wait, iterations in series, a buffer that some
 * ranks keep. Which notes, and where, only the proof of every rank says.
 */
import type { Origin } from "../../commands/command.ts";
import { at } from "../../support/invariant.ts";
import { ends, isSynchronization, type Iteration, neighboursOnOtherStreams, statementKey } from "../explain/notes.ts";
import { nodeKinds } from "../order/graph.ts";
import type { ClockRows } from "../order/known.ts";
import type { ClassGraph } from "./class-graph.ts";
import type { ClassObserver } from "./class-sweep.ts";
import { pushTo } from "../../support/lists.ts";

export interface ClassNotes extends ClassObserver {
  /** After the sweep. */
  mayHaveNotes(): boolean;
}

export const withoutNotes: ClassNotes = { starts: () => {}, waits: () => {}, mayHaveNotes: () => false };

export function createClassNotes(graph: ClassGraph): ClassNotes {
  const { nodesOf, chainOf, rankOf, firstNode, program } = graph;
  const position = new Int32Array(graph.nodeCount);
  for (const nodes of nodesOf.values()) for (const [i, node] of nodes.entries()) position[node] = i + 1;
  const workOf = workCounts(graph);
  const originOf = (node: number): Origin => {
    const rank = at(rankOf, node);
    return at(at(program.ranks, rank).origins, node - at(firstNode, rank) - 1);
  };
  const [idle, needed] = [new Set<string>(), new Set<string>()];
  const befores = seriesOf(graph);
  let isInSeries = false;
  return {
    starts: (node, known) => {
      for (const before of befores.get(node) ?? []) {
        if ((known[at(chainOf, before)] ?? 0) >= at(position, before)) isInSeries = true;
      }
    },
    waits: (node, known, { row, chain: from, position: reached }) => {
      const own = at(chainOf, node);
      const adds = (chain: number, before: number, after: number): boolean =>
        chain !== own && workOf(chain, after) > workOf(chain, before);
      const isNeeded =
        adds(from, known[from] ?? 0, reached) ||
        (row !== known &&
          row.some((after, chain) => after > (known[chain] ?? 0) && adds(chain, known[chain] ?? 0, after)));
      const origin = originOf(node);
      if (isNeeded) needed.add(statementKey(origin));
      else if (isSynchronization(origin)) idle.add(statementKey(origin));
    },
    mayHaveNotes: () => isInSeries || [...idle].some((key) => !needed.has(key)) || keepsSome(graph),
  };
}

/** The nodes that do work among the first nodes of a chain, and those of its image. */
function workCounts({
  nodesOf,
  kind,
  chainBase,
  group,
  program,
}: ClassGraph): (chain: number, count: number) => number {
  const counts = new Map(
    [...nodesOf].map(([chain, nodes]) => {
      const sums = new Int32Array(nodes.length + 1);
      for (const [i, node] of nodes.entries()) {
        const what = kind[node];
        const works = what !== nodeKinds.record && what !== nodeKinds.wait && what !== nodeKinds.signal;
        sums[i + 1] = at(sums, i) + (works ? 1 : 0);
      }
      return [chain, sums] as const;
    }),
  );
  const chainCount = at(chainBase, program.ranks.length);
  const own = new Int32Array(chainCount);
  for (const [rank, representative] of group.representative.entries()) {
    for (let chain = at(chainBase, rank); chain < at(chainBase, rank + 1); chain++) {
      own[chain] = chain - at(chainBase, rank) + at(chainBase, representative);
    }
  }
  return (chain, count) => counts.get(at(own, chain))?.[count] ?? 0;
}

/** By the first work of an iteration: the last of the iteration before it, if the two share no data. */
function seriesOf(graph: ClassGraph): ReadonlyMap<number, readonly number[]> {
  const { program, representatives, firstNode, kind, chainOf } = graph;
  const ranks = representatives.map((rank) => at(program.ranks, rank));
  const neighbours = neighboursOnOtherStreams({ program: { ...program, ranks }, nodeBase: firstNode, kind, chainOf });
  const befores = new Map<number, number[]>();
  for (const [before, after] of neighbours) {
    if (shareData(graph, before, after)) continue;
    const [first, last] = ends(before, after);
    pushTo(befores, first, last);
  }
  return befores;
}

/** Whether one of the two writes bytes that the other touches. */
function shareData({ parts: { start, element, table } }: ClassGraph, a: Iteration, b: Iteration): boolean {
  const { reads, writes, overlaps, regions } = table;
  // A region of the representative, on behalf of the rank that has it.
  const touches = (nodes: readonly number[], rows: readonly ClockRows[]): readonly number[] =>
    nodes.flatMap((node) => {
      const found: number[] = [];
      for (let part = at(start, node); part < at(start, node + 1); part++) {
        for (const { start: first, values } of rows) {
          for (const region of values.subarray(at(first, part), at(first, part + 1))) {
            found.push(at(element, part) * regions.length + region);
          }
        }
      }
      return found;
    });
  const meets = (written: readonly number[], touched: ReadonlySet<number>): boolean =>
    written.some((each) => {
      const region = each % regions.length;
      const others = overlaps.values.subarray(at(overlaps.start, region), at(overlaps.start, region + 1));
      return others.some((other) => touched.has(each - region + other));
    });
  return (
    meets(touches(a.nodes, [writes]), new Set(touches(b.nodes, [reads, writes]))) ||
    meets(touches(b.nodes, [writes]), new Set(touches(a.nodes, [reads, writes])))
  );
}

/** Whether a tensor is freed in one place and kept in another. */
function keepsSome({ program, representatives }: ClassGraph): boolean {
  const isFreed = new Map<number, boolean>();
  for (const rank of representatives) {
    for (const command of at(program.ranks, rank).commands) {
      if (command.kind === "alloc") isFreed.set(command.buffer, isFreed.get(command.buffer) ?? false);
      if (command.kind === "free" && isFreed.has(command.buffer)) isFreed.set(command.buffer, true);
    }
  }
  const byName = new Map<string, boolean>();
  return [...isFreed].some(([buffer, freed]) => {
    const { name } = at(program.buffers, buffer);
    const other = byName.get(name) ?? freed;
    byName.set(name, freed);
    return other !== freed;
  });
}
