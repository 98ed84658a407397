/** Where a statement that a repair adds belongs, in the loaded dump or in the one that `braid lower --rank` prints. */
import type { AddedStatement } from "./repair-hosts.ts";
import type { HostProgram } from "../../host/nodes.ts";
import type { ParsedContainer } from "../../host/parse/parse.ts";
import { print } from "../../host/print/print.ts";
import { readBack } from "../../host/print/statement-lines.ts";
import { walk } from "../../host/traverse.ts";

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
