/**
 * Finds all mistakes in a Program, as numbers of its graph: static mistakes in the lists, then progress, order and
 * contents from the sweeps.
 */
import { at } from "../../support/invariant.ts";
import { countingSteps, type OnProgress } from "../../support/progress.ts";
import { allocatedBuffers } from "./blocks.ts";
import { createContents } from "./contents.ts";
import { shortestCycle } from "./deadlock.ts";
import { type Graph, nodeKinds } from "../order/graph.ts";
import { findStuck, pairChains, type QueueMode } from "../order/stuck.ts";
import type { Problem } from "./problem.ts";
import type { RegionTable } from "./region-table.ts";
import { reportedOf } from "./reported.ts";
import { createRaces } from "./races.ts";
import { staticProblems } from "./static-checks.ts";
import { sweep } from "../order/sweep.ts";
import { createTenants } from "./tenants.ts";

const runs = 2;
const none: readonly number[] = [];

export function findProblems(graph: Graph, table: RegionTable, onProgress?: OnProgress): readonly Problem[] {
  const races = createRaces(table);
  const allocated = allocatedBuffers(graph.program);
  const contents = createContents(graph, table, allocated);
  const tenants = createTenants(graph.program, allocated);
  const { nodeCount, kind, argument } = graph;
  const count = countingSteps(onProgress, "verifying commands", runs * nodeCount);
  const { stuckAt, misuses } = sweep(graph, runs, {
    starts: (node, visit, chain, position, known) => {
      count();
      const buffer = kind[node] === nodeKinds.alloc ? at(argument, node) : -1;
      const before = buffer < 0 ? none : tenants.moveIn(buffer);
      for (const other of before) races.moveIn(at(table.whole, buffer), at(table.whole, other), visit, chain, known);
      races.touch(node, visit, chain, position, known);
      if (visit < nodeCount) contents.starts(node, before);
    },
  });
  return reportedOf(graph, table, {
    statics: staticProblems(graph, table),
    misuses,
    progress: progressProblems(graph, stuckAt !== null),
    conflicts: races.conflicts,
    contents: contents.problems,
  });
}

/** A run that is stuck without a cycle has an empty one. */
function progressProblems(graph: Graph, isStuck: boolean): readonly Problem[] {
  const hasPairs = pairChains(graph).length > 0;
  const modes: readonly QueueMode[] = isStuck ? ["streams"] : hasPairs ? ["pairs", "ranks"] : ["ranks"];
  for (const mode of modes) {
    const stuck = findStuck(graph, mode);
    if (stuck === null) continue;
    const cycle = shortestCycle(graph, stuck);
    return [
      isStuck || cycle === null
        ? { kind: "deadlock", cycle: cycle ?? [] }
        : { kind: "needsConcurrency", cycle, ofPairs: hasPairs && mode === "ranks" },
    ];
  }
  return isStuck ? [{ kind: "deadlock", cycle: [] }] : [];
}
