/**
 * Finds all mistakes in a Program, as numbers of its graph: static mistakes in the lists, then progress, order and
 * contents from the sweeps.
 */
import { at } from "../../support/invariant.ts";
import { allocatedBuffers } from "./blocks.ts";
import { type ContentsProblem, createContents } from "./contents.ts";
import { shortestCycle, type Wait } from "./deadlock.ts";
import { type Graph, nodeKinds } from "../order/graph.ts";
import { findStuck, pairChains, type QueueMode } from "../order/stuck.ts";
import type { RegionTable } from "./region-table.ts";
import { type Conflict, createRaces } from "./races.ts";
import { type StaticProblem, staticProblems } from "./static-checks.ts";
import { sweep } from "../order/sweep.ts";
import { createTenants } from "./tenants.ts";
import type { SlotMisuse } from "../order/slots.ts";

const runs = 2;
const none: readonly number[] = [];

/** Whether the Program is correct in spite of it. */
export function isWarning(problem: Problem): boolean {
  return problem.kind === "needsConcurrency" && problem.ofPairs;
}

export function findProblems(graph: Graph, table: RegionTable): readonly Problem[] {
  const races = createRaces(table);
  const allocated = allocatedBuffers(graph.program);
  const contents = createContents(graph, table, allocated);
  const tenants = createTenants(graph.program, allocated);
  const { nodeCount, kind, argument } = graph;
  const { stuckAt, misuses } = sweep(graph, runs, {
    starts: (node, visit, chain, position, known) => {
      const buffer = kind[node] === nodeKinds.alloc ? at(argument, node) : -1;
      const before = buffer < 0 ? none : tenants.moveIn(buffer);
      for (const other of before) races.moveIn(at(table.whole, buffer), at(table.whole, other), visit, chain, known);
      races.touch(node, visit, chain, position, known);
      if (visit < nodeCount) contents.starts(node, before);
    },
  });
  return [
    ...staticProblems(graph, table),
    ...misuses
      .filter(({ before, next }) => Math.min(before, next) < nodeCount)
      .map(({ kind: nextIs, ...misuse }): Problem => ({ kind: "slotMisuse", nextIs, ...misuse })),
    ...progressProblems(graph, stuckAt !== null),
    ...withoutRepeats(graph, races.conflicts).map((conflict): Problem => ({ kind: "conflict", ...conflict })),
    ...withoutRacing(contents.problems, races.conflicts, table),
  ];
}

/**
 * Drops findings that repeat others. The second run repeats the mistakes of the first. Commands that race within a run
 * also race across runs. A buffer that is freed while in use is also in use at its next alloc, which follows the free.
 */
function withoutRepeats({ nodeCount, kind, argument }: Graph, conflicts: readonly Conflict[]): readonly Conflict[] {
  const pairOf = ({ first, second }: Conflict): string => {
    const nodes = [first.visit % nodeCount, second.visit % nodeCount];
    return `${Math.min(...nodes)} ${Math.max(...nodes)}`;
  };
  const inFirst = conflicts.filter(({ first, second }) => Math.max(first.visit, second.visit) < nodeCount);
  const pairs = new Set(inFirst.map(pairOf));
  const across = conflicts.filter(
    ({ first, second }) => Math.floor(first.visit / nodeCount) !== Math.floor(second.visit / nodeCount),
  );
  const freedUnder = new Set(
    inFirst.flatMap(({ first: { visit: a }, second: { visit: b } }) => [
      ...(kind[a] === nodeKinds.free ? [`${b} ${argument[a]}`] : []),
      ...(kind[b] === nodeKinds.free ? [`${a} ${argument[b]}`] : []),
    ]),
  );
  const isFreedUnder = ({ first, second }: Conflict): boolean => {
    const [earlier, later] = first.visit < second.visit ? [first, second] : [second, first];
    const next = later.visit - nodeCount;
    return kind[next] === nodeKinds.alloc && freedUnder.has(`${earlier.visit} ${argument[next]}`);
  };
  return [...inFirst, ...across.filter((conflict) => !pairs.has(pairOf(conflict)) && !isFreedUnder(conflict))];
}

/** A run that is stuck without a cycle waits for something that never happens. A static check has reported it. */
function progressProblems(graph: Graph, isStuck: boolean): readonly Problem[] {
  const hasPairs = pairChains(graph).length > 0;
  const modes: readonly QueueMode[] = isStuck ? ["streams"] : hasPairs ? ["pairs", "ranks"] : ["ranks"];
  for (const mode of modes) {
    const stuck = findStuck(graph, mode);
    if (stuck === null) continue;
    const cycle = shortestCycle(graph, stuck);
    if (cycle === null) return [];
    return [
      isStuck
        ? { kind: "deadlock", cycle }
        : { kind: "needsConcurrency", cycle, ofPairs: hasPairs && mode === "ranks" },
    ];
  }
  return [];
}

/** If accesses of a buffer race, its contents are undetermined. The race is reported, but not its consequences. */
function withoutRacing(
  problems: readonly ContentsProblem[],
  conflicts: readonly Conflict[],
  { buffer }: RegionTable,
): readonly ContentsProblem[] {
  const racing = new Set(
    conflicts.flatMap(({ first, second }) => [first, second].map(({ region }) => at(buffer, region))),
  );
  return problems.filter((problem) => !racing.has(problem.buffer));
}

/**
 * What verification finds. The commands of a problem are visits: nodes of the first run, or of the second from the node
 * count on.
 */
export type Problem =
  | ({ readonly kind: "conflict" } & Conflict)
  | ({ readonly kind: "slotMisuse" } & Omit<SlotMisuse, "kind"> & { readonly nextIs: SlotMisuse["kind"] })
  | { readonly kind: "deadlock"; readonly cycle: readonly Wait[] }
  /** `ofPairs`: only streams of pairs must run at once, which PyTorch counts on. */
  | { readonly kind: "needsConcurrency"; readonly cycle: readonly Wait[]; readonly ofPairs: boolean }
  | ContentsProblem
  | StaticProblem;
