/** Puts the lists of all ranks in rank order and sees to it that none is missing. */
import { type Diagnostic, DiagnosticError } from "../../diagnostics/diagnostic.ts";
import type { CommandList } from "../command.ts";

/** The lists such that element r is rank r's. Fails with `rank-missing` unless each of the ranks 0 .. n-1 has one list. */
export function listsByRank(lists: readonly CommandList[]): readonly CommandList[] {
  const byRank = new Map<number, number>();
  for (const { rank } of lists) byRank.set(rank, (byRank.get(rank) ?? 0) + 1);
  const world = Math.max(lists.length, ...[...byRank.keys()].map((rank) => rank + 1));
  const problems: Diagnostic[] = [];
  for (const rank of Array.from({ length: world }, (_, r) => r)) {
    const count = byRank.get(rank) ?? 0;
    if (count === 0 && rank < lists.length) problems.push(rankProblem(`rank ${rank} has no command list`, lists));
    if (count > 1) problems.push(rankProblem(`rank ${rank} has ${count} command lists`, lists));
  }
  for (const rank of byRank.keys()) {
    if (rank >= 0 && rank < lists.length && Number.isInteger(rank)) continue;
    problems.push(rankProblem(`rank ${rank} lies outside the ${lists.length} ranks`, lists));
  }
  if (problems.length > 0) throw new DiagnosticError(problems);
  return lists.toSorted((a, b) => a.rank - b.rank);
}

function rankProblem(message: string, lists: readonly CommandList[]): Diagnostic {
  return {
    code: "rank-missing",
    message,
    place: { kind: "call", text: "link(lists)" },
    found: `lists of the ranks ${lists.map(({ rank }) => rank).join(", ")}`,
    expected: `one list of each of the ranks 0 to ${lists.length - 1}`,
    help: "record the program once for every rank and link all the lists",
  };
}
