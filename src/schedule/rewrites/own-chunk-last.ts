/**
 * Moves GEMMs that no other rank waits for, or only later, after those that another rank waits for. In a reduce-scatter,
 * the own chunk is then computed while the others are in flight.
 *
 *     own GEMM, GEMM 1, send 1, GEMM 2, send 2    ->    GEMM 1, send 1, GEMM 2, send 2, own GEMM
 */
import { isBlocking, isSignalling } from "../../commands/command.ts";
import { isGemmKernel } from "../../commands/kernel.ts";
import { at, groupedBy, countWhile } from "../../support/invariant.ts";
import { type DraftDependences, dependentsOf } from "../draft/order/known-dependences.ts";
import type { Draft, DraftNode } from "../draft/draft.ts";
import type { EditContext } from "../draft/edit-ranks.ts";
import { draftRewrite, type Rewrite } from "../rewrite.ts";

export const ownChunkLast: Rewrite<true> = draftRewrite(() => editDraft);

function editDraft(draft: Draft, context: EditContext): Draft {
  const { nodes } = draft;
  const dependences = context.dependences.of(nodes);
  const after = dependentsOf(dependences.before);
  const kernelOf = ({ command }: DraftNode): number | null =>
    command.kind === "launch" && isGemmKernel(at(context.memory.kernels, command.kernel)) ? command.kernel : null;
  const isGemmAt = (position: number): boolean => position < nodes.length && kernelOf(at(nodes, position)) !== null;
  /** When a peer gets a GEMM's own result, and when it needs the GEMM at all. */
  const sentAt = firstSignals(nodes, dependences, isGemmAt);
  const neededAt = firstSignals(nodes, dependences, () => false);
  const launches = groupedBy(nodes.keys(), (position) => kernelOf(at(nodes, position)));
  const arrivals = lastWaits(nodes, dependences, isGemmAt);
  const awaited = awaitedBefore(nodes, arrivals, isGemmAt);
  const movedAfter = new Map<number, number>();
  for (const group of launches.values()) {
    const sentBy = (position: number): number => at(sentAt, position);
    for (const [position, sent] of lastEarlier(group, sentBy)) {
      // Nothing that a peer waits for by then may move.
      const last = Math.min(sent, at(neededAt, position));
      const reached = new Set(followers(position, last, after));
      const target = group.findLast(
        (other) => other > position && other <= last && sentBy(other) < sentBy(position) && !reached.has(other),
      );
      // The GEMM of a gather's own chunk runs while the others arrive, unless they have arrived for an earlier GEMM.
      if (target === undefined || at(arrivals, target) > Math.max(at(arrivals, position), at(awaited, position)))
        continue;
      const moving = [...reached].filter((other) => other <= target);
      if (moving.some((other) => isBlocking(at(nodes, other).command))) continue;
      for (const other of moving) movedAfter.set(other, Math.max(target, movedAfter.get(other) ?? 0));
    }
  }
  if (movedAfter.size === 0) return draft;
  const key = (position: number): number => (movedAfter.get(position) ?? position - 0.5) + 0.5;
  const order = nodes.map((_, position) => position).sort((a, b) => key(a) - key(b) || a - b);
  return { ...draft, nodes: order.map((position) => at(nodes, position)) };
}

/** Pairs of a position and the last one after it with a smaller value. */
function lastEarlier(
  positions: readonly number[],
  valueOf: (position: number) => number,
): readonly (readonly [number, number])[] {
  // From the end: each position whose value is less than all after it, so that values fall.
  const least: number[] = [];
  for (const position of positions.toReversed()) {
    const last = least.at(-1);
    if (last === undefined || valueOf(position) < valueOf(last)) least.push(position);
  }
  return positions.flatMap((position): readonly (readonly [number, number])[] => {
    const target = least[countWhile(least, (other) => valueOf(other) >= valueOf(position))];
    return target === undefined || target < position ? [] : [[position, target]];
  });
}

/**
 * For each node the position of the first signal or transfer that depends on it, other than through a node that `hides`;
 * infinity if there is none.
 */
function firstSignals(
  nodes: readonly DraftNode[],
  { before, sequence }: DraftDependences,
  hides: (vertex: number) => boolean,
): readonly number[] {
  const first = before.map((): number => Infinity);
  for (const vertex of sequence.toReversed()) {
    if (hides(vertex)) continue;
    const node = nodes[vertex];
    const own = node !== undefined && isSignalling(node.command) ? vertex : at(first, vertex);
    for (const other of at(before, vertex)) first[other] = Math.min(at(first, other), own);
  }
  return first;
}

/** For each node the position of the last wait or transfer that it depends on, other than through a GEMM; or -1. */
function lastWaits(
  nodes: readonly DraftNode[],
  { before, sequence }: DraftDependences,
  isGemmAt: (vertex: number) => boolean,
): readonly number[] {
  const last = before.map((): number => -1);
  for (const vertex of sequence) {
    const node = nodes[vertex];
    const own = node !== undefined && isBlocking(node.command) ? vertex : -1;
    last[vertex] = at(before, vertex).reduce(
      (most, other) => (isGemmAt(other) ? most : Math.max(most, at(last, other))),
      own,
    );
  }
  return last;
}

/** For each node the last wait or transfer that a GEMM before it depends on, or -1. */
function awaitedBefore(
  nodes: readonly DraftNode[],
  arrivals: readonly number[],
  isGemmAt: (vertex: number) => boolean,
): readonly number[] {
  let last = -1;
  return nodes.map((_, position) => {
    const before = last;
    if (isGemmAt(position)) last = Math.max(last, at(arrivals, position));
    return before;
  });
}

/**
 * The position, and the positions up to `last` that depend on it directly or indirectly. Vertices for sets of nodes
 * (joins, in known-dependences.ts) are not followed: only signals depend on them, and a
 * GEMM does not move past a signal that depends on it.
 */
function followers(first: number, last: number, after: readonly (readonly number[])[]): readonly number[] {
  const found = new Set([first]);
  for (const position of found) for (const other of at(after, position)) if (other <= last) found.add(other);
  return [...found];
}
