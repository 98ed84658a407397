/**
 * Repairs host programs that do not verify with the fewest statements found: `Wait` for a communication or
 * `Synchronize` with a stream. Every candidate is recorded, linked and verified with the rest, so what is returned
 * verifies. The findings' missing orders say where to look first.
 *
 *   SetCurrentStream to Stream 0          SetCurrentStream to Stream 0
 *                                   ->    Synchronize Stream ( 1 )
 */
import { link } from "../../commands/link/link.ts";
import type { Program } from "../../commands/program.ts";
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";
import type { HostProgram, Statement } from "../../host/nodes.ts";
import { createStatementText } from "../../host/print/print.ts";
import { scopesOf, walk } from "../../host/traverse.ts";
import { at, groupedBy } from "../../support/invariant.ts";
import type { Finding } from "../../verify/finding.ts";
import { verify } from "../../verify/verify.ts";
import type { AnyCompilation, Compilation } from "../compile.ts";
import { pickOptions } from "../options/resolve.ts";
import { record, recordNames } from "../record.ts";
import { awkward, candidates, depthOf } from "./candidates.ts";
import { type StatementInsertion, withInsertion, without } from "./insertion.ts";

export interface HostRepair {
  /** The host program of each rank with the statements; together they verify. */
  readonly hosts: readonly HostProgram[];
  readonly added: readonly AddedStatement[];
  /** The findings, one for each added statement and buffer; further ones are counted in its `occurrences`. */
  readonly findings: readonly Finding[];
}

export interface AddedStatement {
  /** The ranks whose programs get it, at the same place. */
  readonly ranks: readonly number[];
  /** `Wait Communication 0`. */
  readonly text: string;
  /** The statement of the given program that it follows in the text, counted as `walk` does; -1: it is the first. */
  readonly follows: number;
  /** Whether it is the first of an else branch. */
  readonly opensElse: boolean;
  readonly statement: Statement;
  /** The statement before it in its scope, and the one whose scope that is, counted as `walk` does; -1 if there is none. */
  readonly after: number;
  readonly inside: number;
}

/** Most statements that a repair adds. */
const mostAdded = 4;
/**
 * Up to this many candidates for each of them, this many after the first that repairs everything, and this many
 * commands to verify in total.
 */
const mostTried = 600;
const mostCompared = 60;
const mostCommandsTried = 600_000;
/** A repair for any number of streams is better than one that needs loops to return to the same stream. */
const manyStreams = 64;

interface Trial {
  readonly hosts: readonly HostProgram[];
  readonly insertion: StatementInsertion;
  /** Smaller is better, the first number first. */
  readonly score: readonly number[];
}

/** Null if the programs cannot be recorded or linked. `streams`: instead of the given number. */
type Check = (hosts: readonly HostProgram[], streams?: number) => Checked | null;

interface Checked {
  readonly program: Program;
  readonly findings: readonly Finding[];
  /** The number of mistakes that the findings stand for. */
  readonly errors: number;
}

/** Null if the recorded Program verifies, or no few such statements repair it. */
export function repairHosts(compilation: Compilation): HostRepair | null {
  const { hosts, recorded, report } = compilation;
  const check: Check = (tried, streams) => checked(compilation, tried, streams);
  const given = check(hosts);
  if (given === null || given.errors === 0) return null;
  const size = recorded.ranks.reduce((sum, { commands }) => sum + commands.length, 0);
  const budget = Math.min(mostTried, Math.floor(mostCommandsTried / Math.max(1, size)));
  const insertions: StatementInsertion[] = [];
  let now = { hosts, ...given };
  while (now.errors > 0) {
    const best = insertions.length < mostAdded ? bestOf(now.hosts, now.findings, now.errors, check, budget) : null;
    const next = best === null ? null : check(best.hosts);
    if (best === null || next === null) return null;
    insertions.push(best.insertion);
    now = { hosts: best.hosts, ...next };
  }
  return {
    hosts: now.hosts,
    added: insertions.map((insertion) => addedOf(now.hosts, insertions, insertion)),
    findings: byCause(report.findings, now.hosts, insertions, (tried) => check(tried)?.findings ?? null),
  };
}

function checked({ options, sizes }: AnyCompilation, hosts: readonly HostProgram[], streams?: number): Checked | null {
  const { scalars = {} } = options;
  const given = { devices: options.devices, ...pickOptions(recordNames, options) };
  const program = recordedOf(() =>
    link(
      hosts.map((host, rank) =>
        record(host, { rank, sizes, scalars, ...given, ...(streams === undefined ? {} : { streams }) }),
      ),
    ),
  );
  if (program === null) return null;
  const { findings } = verify(program, { counterexamples: false, notes: false });
  const wrong = findings.filter(({ severity }) => severity === "error");
  return { program, findings: wrong, errors: wrong.reduce((sum, { occurrences }) => sum + occurrences, 0) };
}

function recordedOf(make: () => Program): Program | null {
  try {
    return make();
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}

/** Of candidates with the same score, the nearest one to the findings. */
function bestOf(
  hosts: readonly HostProgram[],
  findings: readonly Finding[],
  errors: number,
  check: Check,
  budget: number,
): Trial | null {
  let best: Trial | null = null;
  let left = budget;
  for (const insertion of candidates(hosts, findings)) {
    if (left-- <= 0) break;
    const tried = withInsertion(hosts, insertion);
    const result = check(tried);
    if (result === null || result.errors >= errors) continue;
    const isRight = result.errors === 0;
    const wide = isRight ? check(tried, manyStreams) : null;
    const score = wide === null ? [result.errors] : [0, wide.errors, awkward(hosts, insertion), depthOf(wide.program)];
    if (best !== null && !isLess(score, best.score)) continue;
    if (isRight && best?.score[0] !== 0) left = Math.min(left, mostCompared);
    best = { hosts: tried, insertion, score };
  }
  return best;
}

function isLess(a: readonly number[], b: readonly number[]): boolean {
  const differs = a.findIndex((value, i) => value !== b[i]);
  return differs >= 0 && at(a, differs) < (b[differs] ?? 0);
}

function addedOf(
  hosts: readonly HostProgram[],
  insertions: readonly StatementInsertion[],
  { ranks, statement }: StatementInsertion,
): AddedStatement {
  const host = at(hosts, at(ranks, 0));
  const added = new Set(insertions.map((each) => each.statement));
  const statements = walk(host.body);
  const before = statements.slice(0, statements.indexOf(statement)).filter((each) => !added.has(each));
  const opensElse = statements.some((each) => each.kind === "IfThenElse" && firstGiven(each.else, added, statement));
  const given = statements.filter((each) => !added.has(each));
  const scopes = [{ owner: null, scope: host.body }, ...statements.flatMap(scopesIn)];
  const { owner, scope } = scopes.find((each) => each.scope.includes(statement)) ?? at(scopes, 0);
  const last = scope.slice(0, scope.indexOf(statement)).findLast((each) => !added.has(each));
  return {
    ranks,
    text: createStatementText(host)(statement).trim(),
    follows: before.length - 1,
    opensElse,
    statement,
    after: last === undefined ? -1 : given.indexOf(last),
    inside: owner === null ? -1 : given.indexOf(owner),
  };
}

function scopesIn(
  owner: Statement,
): readonly { readonly owner: Statement | null; readonly scope: readonly Statement[] }[] {
  return scopesOf(owner).map((scope) => ({ owner, scope }));
}

/** Whether only added statements precede it in its scope. */
function firstGiven(scope: readonly Statement[], added: ReadonlySet<Statement>, statement: Statement): boolean {
  const index = scope.indexOf(statement);
  return index >= 0 && scope.slice(0, index).every((each) => added.has(each));
}

// Joins the findings of one cause: of one added statement, one for each buffer.

/** The findings of host programs; null if they cannot be recorded or linked. */
type FindingsOf = (hosts: readonly HostProgram[]) => readonly Finding[] | null;

/**
 * `hosts` have the insertions, and verify. A finding belongs to the first insertion without which it comes back.
 */
function byCause(
  findings: readonly Finding[],
  hosts: readonly HostProgram[],
  insertions: readonly StatementInsertion[],
  findingsOf: FindingsOf,
): readonly Finding[] {
  const comesBack =
    insertions.length === 1
      ? []
      : insertions.map(({ statement }) => new Set(findingsOf(without(hosts, statement))?.map(keyOf)));
  const errors = findings.filter(({ severity }) => severity === "error");
  const groups = groupedBy(errors, (finding) => {
    const cause = comesBack.findIndex((keys) => keys.has(keyOf(finding)));
    return `${cause} ${finding.memory?.tensor ?? ""}`;
  });
  return [...[...groups.values()].map(joined), ...findings.filter((finding) => !errors.includes(finding))];
}

function joined(group: readonly Finding[]): Finding {
  const first = at(group, 0);
  const occurrences = group.reduce((sum, each) => sum + each.occurrences, 0);
  if (group.length === 1) return first;
  const others = `and ${occurrences - first.occurrences} more with the same cause`;
  return { ...first, occurrences, notes: [...(first.notes ?? []), others] };
}

/** Equal for a finding before and after a statement is added elsewhere. */
function keyOf({ code, memory, commands }: Finding): string {
  return [
    code,
    memory?.tensor ?? "",
    ...commands.map(({ kind, statement, run }) => `${kind} ${statement} ${run}`),
  ].join("|");
}
