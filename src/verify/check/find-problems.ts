/**
 * Finds all mistakes in a Program, as numbers of its graph: static mistakes in the lists, then progress, order and
 * contents from the sweeps.
 */
import { at } from "../../support/invariant.ts";
import { countingSteps, type OnProgress } from "../../support/progress.ts";
import { type Graph, nodeKinds } from "../order/graph.ts";
import type { SlotMisuse } from "../order/slots.ts";
import { findStuck, pairChains, type StuckMode } from "../order/stuck.ts";
import { sweep } from "../order/sweep.ts";
import { allocatedBuffers, type RegionTable } from "./region-table.ts";
import { type ContentsProblem, createContents, createTenants } from "./contents.ts";
import { shortestCycle, type QueueWait } from "./deadlock.ts";
import { type Conflict, createRaces } from "./races.ts";
import { type StaticProblem, staticProblems } from "./static-checks.ts";

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
  const modes: readonly StuckMode[] = isStuck ? ["streams"] : hasPairs ? ["pairs", "ranks"] : ["ranks"];
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

// Which of the problems found are reported: all but those that a reported one explains, as a race explains what its
// buffer contains. A problem that is left out explains nothing, so that no two problems hide each other.

/** What the checks find in two runs. */
interface Found {
  readonly statics: readonly StaticProblem[];
  readonly misuses: readonly SlotMisuse[];
  readonly progress: readonly Problem[];
  readonly conflicts: readonly Conflict[];
  readonly contents: readonly ContentsProblem[];
}

interface Candidate {
  readonly problem: Problem;
  readonly explains: readonly string[];
  /** It is left out if a reported problem explains one of these. */
  readonly explainedBy: readonly string[];
}

function reportedOf(graph: Graph, { buffer }: Pick<RegionTable, "buffer">, found: Found): readonly Problem[] {
  const { nodeCount } = graph;
  const isRepeat = (...visits: readonly number[]): boolean => Math.min(...visits) >= nodeCount;
  const misuses = found.misuses.map(({ kind: nextIs, ...misuse }): Candidate => {
    const repeats = isRepeat(misuse.before, misuse.next);
    const slot = [`slot ${misuse.slot}`];
    return {
      problem: { kind: "slotMisuse", nextIs, ...misuse },
      explains: repeats ? [] : slot,
      explainedBy: repeats ? slot : [],
    };
  });
  const conflictOf = (conflict: Conflict, explains: readonly string[], explainedBy: readonly string[]): Candidate => ({
    problem: { kind: "conflict", ...conflict },
    explains: [...explains, ...racingOf(conflict)],
    explainedBy,
  });
  const racingOf = ({ first, second }: Conflict): readonly string[] =>
    [first, second].map(({ region }) => `race of ${at(buffer, region)}`);
  const ofRun = (run: "first" | "both" | "second"): readonly Conflict[] =>
    found.conflicts.filter(({ first, second }) => {
      const early = [first, second].filter(({ visit }) => visit < nodeCount).length;
      return run === (["second", "both", "first"] as const)[early];
    });
  return unexplained([
    ...found.statics.map((problem) => ({ problem, explains: ["stuck"], explainedBy: [] })),
    ...misuses.filter(({ explains }) => explains.length > 0),
    // The second run repeats the mistakes of the first.
    ...misuses.filter(({ explainedBy }) => explainedBy.length > 0),
    // A run that is stuck without a cycle waits for something that never happens.
    ...found.progress.map((problem) => ({
      problem,
      explains: [],
      explainedBy: problem.kind === "deadlock" && problem.cycle.length === 0 ? ["stuck"] : [],
    })),
    ...ofRun("first").map((conflict) =>
      conflictOf(conflict, [pairOf(graph, conflict), ...freedUnder(graph, conflict)], []),
    ),
    // Commands that race within a run also race across runs.
    ...ofRun("both").map((conflict) =>
      conflictOf(conflict, [], [pairOf(graph, conflict), ...allocatedOver(graph, conflict)]),
    ),
    // If accesses of a buffer race, its contents are undetermined.
    ...found.contents.map((problem) => ({
      problem,
      explains: problem.kind === "unwritten" ? [] : [`life of ${problem.buffer}`],
      explainedBy: [`race of ${problem.buffer}`],
    })),
    ...ofRun("second").map((conflict) =>
      conflictOf(
        conflict,
        [],
        [
          ...racingOf(conflict),
          ...[conflict.first, conflict.second].map(({ region }) => `life of ${at(buffer, region)}`),
        ],
      ),
    ),
  ]);
}

function unexplained(causesFirst: readonly Candidate[]): readonly Problem[] {
  const explained = new Set<string>();
  return causesFirst.flatMap(({ problem, explains, explainedBy }) => {
    if (explainedBy.some((key) => explained.has(key))) return [];
    for (const key of explains) explained.add(key);
    return [problem];
  });
}

function pairOf({ nodeCount }: Graph, { first, second }: Conflict): string {
  const nodes = [first.visit % nodeCount, second.visit % nodeCount];
  return `pair ${Math.min(...nodes)} ${Math.max(...nodes)}`;
}

/** A buffer that is freed while in use is also in use at its next alloc, which follows the free. */
function freedUnder({ kind, argument }: Graph, { first, second }: Conflict): readonly string[] {
  return [
    [first.visit, second.visit],
    [second.visit, first.visit],
  ].flatMap(([a = 0, b = 0]) => (kind[a] === nodeKinds.free ? [`free of ${argument[a]} under ${b}`] : []));
}

function allocatedOver({ nodeCount, kind, argument }: Graph, { first, second }: Conflict): readonly string[] {
  const [earlier, later] = [Math.min(first.visit, second.visit), Math.max(first.visit, second.visit) - nodeCount];
  return kind[later] === nodeKinds.alloc ? [`free of ${argument[later]} under ${earlier}`] : [];
}

// The mistakes in a Program, as numbers of its graph.

/**
 * What verification finds. The commands of a problem are visits: nodes of the first run, or of the second from the node
 * count on.
 */
export type Problem =
  | ({ readonly kind: "conflict" } & Conflict)
  | ({ readonly kind: "slotMisuse" } & Omit<SlotMisuse, "kind"> & { readonly nextIs: SlotMisuse["kind"] })
  | { readonly kind: "deadlock"; readonly cycle: readonly QueueWait[] }
  /** `ofPairs`: only streams of pairs must run at once, which PyTorch counts on. */
  | { readonly kind: "needsConcurrency"; readonly cycle: readonly QueueWait[]; readonly ofPairs: boolean }
  | ContentsProblem
  | StaticProblem;

/** Whether the Program is correct in spite of it. */
export function isWarning(problem: Problem): boolean {
  return problem.kind === "needsConcurrency" && problem.ofPairs;
}
