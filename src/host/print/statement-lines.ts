/** The line where each statement begins, in the loaded dump or in the one that `braid lower --rank` prints. */
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";
import type { HostProgram, Statement } from "../nodes.ts";
import { parseContainers, type ParsedContainer } from "../parse/parse.ts";
import { print } from "./print.ts";

/**
 * Lines in the dumps that `print` makes of the ranks' programs. A dump is printed and parsed when its first line is
 * needed.
 */
export function printedLines(hosts: readonly HostProgram[]) {
  return lazily(hosts, (host) => {
    const container = readBack(host);
    return container === null ? new Map<string, number>() : pathLines(container);
  });
}

/** Lines in the file of the ranks' containers. */
export function dumpLines(containers: readonly ParsedContainer[]) {
  return lazily(containers, pathLines);
}

type PathLines = ReadonlyMap<string, number>;

function lazily<T>(ranks: readonly T[], linesOf: (own: T) => PathLines) {
  // Ranks often share one program.
  const known = new Map<T, PathLines>();
  return (rank: number, path: readonly number[]): number | null => {
    const own = ranks[rank];
    if (own === undefined) return null;
    const lines = known.get(own) ?? linesOf(own);
    known.set(own, lines);
    return lines.get(path.join(".")) ?? null;
  };
}

/** Null for a program that uses an undefined scalar as a value: its dump does not parse, so it has no lines. */
export function readBack(host: HostProgram): ParsedContainer | null {
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
