/** The line where each statement begins, in the loaded dump or in the one that `braid lower --rank` prints. */
import type { HostProgram, Statement } from "../../host/nodes.ts";
import { parseContainers, type ParsedContainer } from "../../host/parse/parse.ts";
import { print } from "../../host/print/print.ts";
import { walk } from "../../host/traverse.ts";
import type { AddedStatement } from "../../compile/repair/repair-hosts.ts";
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";

export type LineOf = (rank: number, path: readonly number[]) => number | null;

/**
 * Lines in the dumps that `print` makes of the ranks' programs. A dump is printed and parsed when its first line is
 * needed.
 */
export function printedLines(hosts: readonly HostProgram[]): LineOf {
  return lazily(hosts, (host) => {
    const container = readBack(host);
    return container === null ? new Map<string, number>() : pathLines(container);
  });
}

/** Lines in the file of the ranks' containers. */
export function dumpLines(containers: readonly ParsedContainer[]): LineOf {
  return lazily(containers, pathLines);
}

type PathLines = ReadonlyMap<string, number>;

function lazily<T>(ranks: readonly T[], linesOf: (own: T) => PathLines): LineOf {
  // Ranks often share one program.
  const known = new Map<T, PathLines>();
  return (rank, path) => {
    const own = ranks[rank];
    if (own === undefined) return null;
    const lines = known.get(own) ?? linesOf(own);
    known.set(own, lines);
    return lines.get(path.join(".")) ?? null;
  };
}

/** Null for a program that uses an undefined scalar as a value: its dump does not parse, so it has no lines. */
function readBack(host: HostProgram): ParsedContainer | null {
  try {
    return parseContainers(print(host))[0] ?? null;
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    return null;
  }
}

function pathLines({ program, lines }: ParsedContainer): PathLines {
  const found = new Map<string, number>();
  const walk = (body: readonly Statement[], path: readonly number[]): void => {
    for (const [position, statement] of body.entries()) {
      const here = [...path, position];
      const line = lines.get(statement);
      const key = here.join(".");
      if (line !== undefined && !found.has(key)) found.set(key, line);
      if (statement.kind === "ForLoop") walk(statement.body, here);
      if (statement.kind === "IfThenElse") {
        walk(statement.then, here);
        walk(statement.else, here);
      }
    }
  };
  walk(program.body, []);
  return found;
}

/**
 * The last line before an added statement, in the file of the ranks' containers, or in the dumps that `print` makes of
 * the ranks' programs if `containers` is null. Null if it is unknown.
 */
export function lineBefore(
  hosts: readonly HostProgram[],
  containers: readonly ParsedContainer[] | null,
  rank: number,
  { follows, opensElse }: Pick<AddedStatement, "follows" | "opensElse">,
): number | null {
  const host = hosts[rank];
  const container = containers?.[rank] ?? (host === undefined ? null : readBack(host));
  if (container === null) return null;
  const { program, lines, line } = container;
  if (follows < 0) return line;
  const statements = walk(program.body);
  const [last, next] = [statements[follows], statements[follows + 1]];
  const ended = last === undefined ? undefined : lines.get(last);
  if (next === undefined) return ended === undefined ? null : ended + lastLines(program) - 1;
  const begun = lines.get(next);
  if (begun === undefined) return null;
  const isInElse = statements.some((each) => each.kind === "IfThenElse" && each.else[0] === next);
  return begun - (isInElse && !opensElse ? 2 : 1);
}

/** How many lines the last statement takes. */
function lastLines(host: HostProgram): number {
  const container = readBack(host);
  const last = container === null ? undefined : walk(container.program.body).at(-1);
  const begun = last === undefined ? undefined : container?.lines.get(last);
  if (begun === undefined) return 1;
  const rest = print(host).split("\n").slice(begun);
  return 1 + rest.findIndex((text) => text.trim() === "" || text.startsWith("}"));
}
