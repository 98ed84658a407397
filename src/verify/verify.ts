/**
 * Proves a linked Program free of races, deadlocks and misuse of memory, for every execution that its edges allow, over two consecutive runs
 * and with what the caller does between them; or says what is wrong. docs/verifier.md has the model, its assumptions and its limits.
 */
import type { CommandList } from "../commands/command.ts";
import { link } from "../commands/link.ts";
import type { Program } from "../commands/program.ts";
import { DiagnosticError } from "../diagnostics/diagnostic.ts";
import { at } from "../support/invariant.ts";
import { type ContentsProblem, createContents } from "./contents.ts";
import { shortestCycle } from "./deadlock.ts";
import type { Finding } from "./finding.ts";
import { createGraph, type Graph } from "./graph.ts";
import { toFindings } from "./to-findings.ts";
import type { Problem } from "./problem.ts";
import { findStuck } from "./progress.ts";
import { createRegionTable, type RegionTable } from "./region-table.ts";
import { type Conflict, createShadow } from "./shadow.ts";
import { staticProblems } from "./static-checks.ts";
import { sweep } from "./sweep.ts";

export interface VerifyOptions {
  /** Whether findings come with notes, which tell of lost time and memory; true if not given. */
  readonly notes?: boolean;
}

export interface VerifyReport {
  /** Whether no finding is an error. */
  readonly ok: boolean;
  readonly findings: readonly Finding[];
  /** What was looked at: commands of one run over all ranks, streams that have commands, regions of memory. */
  readonly size: {
    readonly ranks: number;
    readonly commands: number;
    readonly streams: number;
    readonly regions: number;
  };
}

/** Time and memory grow with commands times streams. Never throws for a Program that link made. */
export function verify(program: Program, options: VerifyOptions = {}): VerifyReport {
  void options;
  const graph = createGraph(program);
  const table = createRegionTable(graph);
  const problems = findProblems(graph, table);
  const findings = toFindings(graph, table, problems);
  return {
    ok: findings.every(({ severity }) => severity !== "error"),
    findings,
    size: {
      ranks: program.ranks.length,
      commands: program.ranks.reduce((sum, { commands }) => sum + commands.length, 0),
      streams: graph.chains.length,
      regions: table.regions.length,
    },
  };
}

/**
 * The same from the lists of all ranks: where they cannot be linked, the findings are link's. Throws `rank-missing` unless there is one
 * list of each rank.
 */
export function verifyLists(lists: readonly CommandList[], options: VerifyOptions = {}): VerifyReport {
  try {
    return verify(link(lists), options);
  } catch (error) {
    if (!(error instanceof DiagnosticError) || error.diagnostics.some(({ code }) => code !== "transfer-mismatch"))
      throw error;
    return {
      ok: false,
      findings: error.diagnostics.map((diagnostic) => ({
        ...diagnostic,
        severity: "error",
        commands: [],
        occurrences: 1,
        memory: null,
        ancestor: null,
        missingEdge: null,
      })),
      size: {
        ranks: lists.length,
        commands: lists.reduce((sum, { commands }) => sum + commands.length, 0),
        streams: lists.reduce((sum, { streams }) => sum + streams.length, 0),
        regions: 0,
      },
    };
  }
}

const runs = 2;

function findProblems(graph: Graph, table: RegionTable): readonly Problem[] {
  const shadow = createShadow(table);
  const contents = createContents(graph, table);
  const { nodeCount } = graph;
  const { stuckAt, misuses } = sweep(graph, runs, {
    starts: (node, visit, chain, position, known) => {
      shadow.touch(node, visit, chain, position, known);
      if (visit < nodeCount) contents.starts(node);
    },
  });
  return [
    ...staticProblems(graph, table),
    ...misuses
      .filter(({ before, next }) => Math.min(before, next) < nodeCount)
      .map(({ kind: nextIs, ...misuse }): Problem => ({ kind: "slotMisuse", nextIs, ...misuse })),
    ...progressProblems(graph, stuckAt !== null),
    ...withoutRepeats(shadow.conflicts, nodeCount).map((conflict): Problem => ({ kind: "conflict", ...conflict })),
    ...withoutRacing(contents.problems, shadow.conflicts, table),
  ];
}

/**
 * The second run repeats the mistakes of the first, which has less order; and two commands that race within a run are not worth a second
 * finding where the one meets the other's next run.
 */
function withoutRepeats(conflicts: readonly Conflict[], nodeCount: number): readonly Conflict[] {
  const pairOf = ({ first, second }: Conflict): string => {
    const nodes = [first.visit % nodeCount, second.visit % nodeCount];
    return `${Math.min(...nodes)} ${Math.max(...nodes)}`;
  };
  const inFirst = conflicts.filter(({ first, second }) => Math.max(first.visit, second.visit) < nodeCount);
  const pairs = new Set(inFirst.map(pairOf));
  const across = conflicts.filter(
    ({ first, second }) => Math.floor(first.visit / nodeCount) !== Math.floor(second.visit / nodeCount),
  );
  return [...inFirst, ...across.filter((conflict) => !pairs.has(pairOf(conflict)))];
}

/** A run that is stuck without a circle waits for what never comes, which a static check has told. */
function progressProblems(graph: Graph, isStuck: boolean): readonly Problem[] {
  const stuck = findStuck(graph, isStuck ? "streams" : "ranks");
  const cycle = stuck === null ? null : shortestCycle(graph, stuck);
  if (cycle === null) return [];
  return [{ kind: isStuck ? "deadlock" : "needsConcurrency", cycle }];
}

/** Where accesses of a buffer race, what it holds is not settled: the race is told, and no consequence of it. */
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
