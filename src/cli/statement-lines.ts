/** In which line of a rank's dump each statement begins: the dump that `braid lower --rank` prints. */
import type { HostProgram, Statement } from "../host/nodes.ts";
import { parseContainers } from "../host/parse.ts";
import { print } from "../host/print.ts";
import { DiagnosticError } from "../diagnostics/diagnostic.ts";

export type LineOf = (rank: number, path: readonly number[]) => number | null;

/** Dumps are printed and read when a line is first asked for. */
export function printedLines(hosts: readonly HostProgram[]): LineOf {
  const known = new Map<number, ReadonlyMap<string, number>>();
  return (rank, path) => {
    let lines = known.get(rank);
    if (lines === undefined) {
      const host = hosts[rank];
      lines = host === undefined ? new Map<string, number>() : linesOf(host);
      known.set(rank, lines);
    }
    return lines.get(path.join(".")) ?? null;
  };
}

function linesOf(host: HostProgram): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  const walk = (body: readonly Statement[], lines: ReadonlyMap<Statement, number>, path: readonly number[]): void => {
    for (const [position, statement] of body.entries()) {
      const here = [...path, position];
      const line = lines.get(statement);
      const key = here.join(".");
      if (line !== undefined && !found.has(key)) found.set(key, line);
      if (statement.kind === "ForLoop") walk(statement.body, lines, here);
      if (statement.kind === "IfThenElse") {
        walk(statement.then, lines, here);
        walk(statement.else, lines, here);
      }
    }
  };
  try {
    for (const { program, lines } of parseContainers(print(host))) walk(program.body, lines, []);
  } catch (error) {
    // A dump that lacks something for being read back has no lines to name.
    if (!(error instanceof DiagnosticError)) throw error;
  }
  return found;
}
