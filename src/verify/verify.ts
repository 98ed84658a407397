/**
 * Proves a linked Program free of races, deadlocks and misuse of memory, or reports what is wrong. The proof covers
 * every execution that its edges allow, over two consecutive runs, with what the caller does between them.
 * docs/verifier.md has the model, its assumptions and its limits.
 */
import type { CommandList } from "../commands/command-list.ts";
import type { Program } from "../commands/program.ts";
import type { DiagnosticError } from "../diagnostics/diagnostic.ts";
import { findProblems } from "./check/find-problems.ts";
import type { Finding, RepairStep } from "./finding.ts";
import { createGraph, type LineOf } from "./order/graph.ts";
import { missingIn, stepsOf } from "./explain/missing.ts";
import { noteFindings } from "./explain/notes.ts";
import { problemFinding } from "./explain/problem-finding.ts";
import { createRegionTable } from "./check/region-table.ts";
import { type Repair, repairProgram } from "./explain/repair.ts";
import { toFindings } from "./explain/to-findings.ts";

export interface VerifyOptions {
  /**
   * Whether findings come with their nearest common ancestor, an interleaving and a repair, each of which takes more
   * sweeps; true if omitted. The verdict does not depend on it.
   */
  readonly counterexamples?: boolean;
  /** Whether a correct Program gets notes on what it could do better; true if omitted. */
  readonly notes?: boolean;
  /** The lines of dumps that findings name. */
  readonly lineOf?: LineOf;
}

export interface VerifyReport {
  /** Whether no finding is an error. */
  readonly ok: boolean;
  readonly findings: readonly Finding[];
  /**
   * The fewest commands found that make the Program correct, checked; null if there is nothing to repair, or no
   * insertion repairs it.
   */
  readonly repair: readonly RepairStep[] | null;
  /** What was checked: commands of one run over all ranks, streams that have commands, regions of memory. */
  readonly size: ProgramSize;
}

export interface ProgramSize {
  readonly ranks: number;
  readonly commands: number;
  readonly streams: number;
  readonly regions: number;
}

/** Time and memory grow with commands times streams. Never throws for a Program that link made. */
export function verify(
  program: Program,
  { counterexamples = true, notes = true, lineOf }: VerifyOptions = {},
): VerifyReport {
  const graph = createGraph(program, lineOf);
  const table = createRegionTable(graph);
  const problems = findProblems(graph, table);
  const repaired = counterexamples && problems.length > 0 ? repair(program) : null;
  const steps = repaired === null ? null : stepsOf(program, repaired.insertions);
  // An incorrect Program gets no notes yet.
  const noted = notes && problems.length === 0 ? noteFindings(graph, table) : [];
  const findings = [
    ...toFindings(
      graph,
      problems.map((problem) => problemFinding(graph, table, problem)),
      counterexamples,
    ),
    ...toFindings(graph, noted, false),
  ];
  return {
    ok: findings.every(({ severity }) => severity !== "error"),
    findings,
    repair: steps,
    size: {
      ranks: program.ranks.length,
      commands: program.ranks.reduce((sum, { commands }) => sum + commands.length, 0),
      streams: graph.chains.length,
      regions: table.regions.length,
    },
  };
}

/**
 * The Program with the fewest insertions found that make it verify, and these insertions; null if none do, as for a
 * deadlock.
 */
export function repair(program: Program): Repair | null {
  return repairProgram(program, missingIn);
}

/** The report on lists of all ranks that do not link: its findings are link's. */
export function unlinkedReport(lists: readonly CommandList[], { diagnostics }: DiagnosticError): VerifyReport {
  return {
    ok: false,
    findings: diagnostics.map((diagnostic) => ({
      ...diagnostic,
      severity: "error",
      commands: [],
      occurrences: 1,
      memory: null,
      ancestor: null,
      missingEdge: null,
      interleaving: null,
    })),
    repair: null,
    size: {
      ranks: lists.length,
      commands: lists.reduce((sum, { commands }) => sum + commands.length, 0),
      streams: lists.reduce((sum, { streams }) => sum + streams.length, 0),
      regions: 0,
    },
  };
}
