/**
 * Which of the problems found are reported: all but those that a reported one explains, as a race explains what its
 * buffer contains. A problem that is left out explains nothing, so that no two problems hide each other.
 */
import { at } from "../../support/invariant.ts";
import { type Graph, nodeKinds } from "../order/graph.ts";
import type { SlotMisuse } from "../order/slots.ts";
import type { ContentsProblem } from "./contents.ts";
import type { Problem } from "./problem.ts";
import type { Conflict } from "./races.ts";
import type { RegionTable } from "./region-table.ts";
import type { StaticProblem } from "./static-checks.ts";

/** What the checks find in two runs. */
export interface Found {
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

export function reportedOf(graph: Graph, { buffer }: Pick<RegionTable, "buffer">, found: Found): readonly Problem[] {
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
