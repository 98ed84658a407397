/**
 * Proves a linked Program free of races, deadlocks and misuse of memory, or reports findings. The proof covers every
 * execution that the Program's edges allow, over two consecutive runs, including the caller's actions between them.
 * docs/verifier.md describes the model, its assumptions and its limits.
 */
import type { CommandList } from "../commands/command-list.ts";
import { commandsOfRanks, type Program } from "../commands/program.ts";
import { type Diagnostic, DiagnosticError } from "../diagnostics/diagnostic.ts";
import { at, InvariantError } from "../support/invariant.ts";
import type { OnProgress } from "../support/progress.ts";
import { allocatedBuffers, createRegionTable } from "./check/region-table.ts";
import { findProblems, isWarning } from "./check/find-problems.ts";
import { checkRank } from "./check/structure/commands.ts";
import { malformedAt } from "./check/structure/demand.ts";
import { checkApart, checkTables } from "./check/structure/tables.ts";
import { checkTransfer } from "./check/structure/transfers.ts";
import { proveByClasses } from "./classes/prove-classes.ts";
import { noteFindings, type WantedNotes } from "./explain/notes.ts";
import { problemFinding } from "./explain/problem-finding.ts";
import { toFindings } from "./explain/to-findings.ts";
import type { Finding } from "./finding.ts";
import { createGraph, type LineOf } from "./order/graph.ts";

export interface VerifyOptions {
  /**
   * Whether findings include their nearest common ancestor and an interleaving, each of which takes more sweeps.
   * Default: true. The verdict does not depend on it.
   */
  readonly counterexamples?: boolean;
  /**
   * Whether a correct Program gets notes on possible improvements. Default: true. `lowered`: but not on waits that add
   * no order, because the compiler wrote them.
   */
  readonly notes?: WantedNotes;
  /**
   * Whether every rank is verified, even if one rank of each class stands for the others
   * (src/verify/classes/README.md). The report is the same. Default: false.
   */
  readonly full?: boolean;
  /** The lines of dumps that findings name. */
  readonly lineOf?: LineOf;
  /** Hears which step is under way. */
  readonly onProgress?: OnProgress;
}

export interface VerifyReport {
  /** Whether no finding is an error. */
  readonly ok: boolean;
  readonly findings: readonly Finding[];
  /**
   * The size of the checked Program: commands of one run over all ranks, streams with commands, and regions of memory.
   */
  readonly size: ProgramSize;
}

export interface ProgramSize {
  readonly ranks: number;
  readonly commands: number;
  readonly streams: number;
  readonly regions: number;
}

/**
 * Verifies a linked Program. Time and memory grow with commands times streams. Never throws: a
 * Program that was made or changed by hand and lacks the structure of one has the finding `program-malformed`.
 */
export function verify(
  program: Program,
  { counterexamples = true, notes = true, full = false, lineOf, onProgress }: VerifyOptions = {},
): VerifyReport {
  const byClasses = full ? null : verifyClasses(program, notes, onProgress);
  if (byClasses !== null) return byClasses;
  const fault = structureProblem(program);
  if (fault !== null) return invalidReport(fault);
  const graph = createGraph(program, lineOf);
  const table = createRegionTable(graph);
  const problems = findProblems(graph, table, onProgress);
  const isWrong = !problems.every(isWarning);
  // Only a correct Program gets notes.
  const noted = notes !== false && !isWrong ? noteFindings(graph, table, notes) : [];
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
    size: sizeOf(program, { streams: graph.chains.length, regions: table.regions.length }),
  };
}

/** The report of a Program that is proven by class; null if it is not, and all ranks are to be verified. */
export function verifyClasses(program: Program, notes: WantedNotes, onProgress?: OnProgress): VerifyReport | null {
  const proof = proveByClasses(program, notes, leastRanks, onProgress);
  return proof === null ? null : { ok: true, findings: [], size: sizeOf(program, proof) };
}

/** With fewer ranks, verifying all of them takes less time than comparing them. */
const leastRanks = 8;

function sizeOf({ ranks }: Program, { streams, regions }: Pick<ProgramSize, "streams" | "regions">): ProgramSize {
  const commands = commandsOfRanks(ranks);
  return { ranks: ranks.length, commands, streams, regions };
}

/** The report for lists that do not link. Its findings are link's. */
export function unlinkedReport(lists: readonly CommandList[], { diagnostics }: DiagnosticError): VerifyReport {
  return {
    ok: false,
    findings: diagnostics.map(findingOfLists),
    size: {
      ranks: lists.length,
      commands: lists.reduce((sum, { commands }) => sum + commands.length, 0),
      streams: lists.reduce((sum, { streams }) => sum + streams.length, 0),
      regions: 0,
    },
  };
}

function invalidReport(fault: Diagnostic): VerifyReport {
  const size = { ranks: 0, commands: 0, streams: 0, regions: 0 };
  return { ok: false, findings: [findingOfLists(fault)], size };
}

/** The report with what link doubts. */
export function withWarnings(report: VerifyReport, warnings: readonly Diagnostic[]): VerifyReport {
  return warnings.length === 0
    ? report
    : { ...report, findings: [...report.findings, ...warnings.map(findingOfLists)] };
}

/** A finding of link, which names no commands. */
function findingOfLists(diagnostic: Diagnostic): Finding {
  return {
    severity: "error",
    ...diagnostic,
    commands: [],
    occurrences: 1,
    memory: null,
    ancestor: null,
    missingEdge: null,
    interleaving: null,
  };
}

// Whether a value of type Program has the structure that the proof relies on: ids in range, operands that fit their
// kernels, buffers within their arenas, peers' buffers in symmetric memory, and transfers whose halves fit. Programs of
// `link` and of rewrites have it; a Program made or changed by hand may not.

/**
 * The first fault: `program-malformed`, or `transfer-mismatch` between the halves of a transfer. Null if there is none.
 */
function structureProblem(program: Program): Diagnostic | null {
  try {
    checkTables(program);
    checkApart(program.buffers, allocatedBuffers(program));
    for (const rank of program.ranks) checkRank(program, rank);
    for (const [id, transfer] of program.transfers.entries()) checkTransfer(program, transfer, id);
    return null;
  } catch (error) {
    if (error instanceof DiagnosticError) return at(error.diagnostics, 0);
    // A value of another type than Program declares may fail anywhere that it is read.
    if (error instanceof TypeError || error instanceof RangeError || error instanceof InvariantError) {
      return malformedAt("a field", "a value of another type, or none", "a value of type Program");
    }
    throw error;
  }
}
