/** In which line each statement begins: of the dump that was loaded, or of the one that `braid lower --rank` prints. */
import type { HostProgram, Statement } from "../../host/nodes.ts";
import { parseContainers, type ParsedContainer } from "../../host/parse/parse.ts";
import { print } from "../../host/print/print.ts";
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";

export type LineOf = (rank: number, path: readonly number[]) => number | null;

/** Lines of the dumps that `print` makes of the ranks' programs, which are printed and read when a line is first asked for. */
export function printedLines(hosts: readonly HostProgram[]): LineOf {
  return lazily(hosts, (host) => {
    const container = readBack(host);
    return container === null ? new Map<string, number>() : pathLines(container);
  });
}

/** Lines of the file from which the ranks' containers come. */
export function dumpLines(containers: readonly ParsedContainer[]): LineOf {
  return lazily(containers, pathLines);
}

type PathLines = ReadonlyMap<string, number>;

function lazily<T>(ranks: readonly T[], linesOf: (own: T) => PathLines): LineOf {
  // Ranks often have one program in common.
  const known = new Map<T, PathLines>();
  return (rank, path) => {
    const own = ranks[rank];
    if (own === undefined) return null;
    const lines = known.get(own) ?? linesOf(own);
    known.set(own, lines);
    return lines.get(path.join(".")) ?? null;
  };
}

/** Null for a program that names a scalar which only the run knows as if it were a value of the program's: it has no lines. */
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
