/** Puts the lists of all ranks in rank order and sees to it that none is missing. */
import { type Diagnostic, DiagnosticError } from "../../diagnostics/diagnostic.ts";
import type { CommandList } from "../command-list.ts";

/** The lists such that element r is rank r's. Fails with `rank-missing` unless each of the ranks 0 .. n-1 has one list. */
export function listsByRank(lists: readonly CommandList[]): readonly CommandList[] {
  const counts = new Map<number, number>(lists.map((_, rank) => [rank, 0]));
  for (const { rank } of lists) counts.set(rank, (counts.get(rank) ?? 0) + 1);
  const problems = [...counts].flatMap(([rank, count]) => {
    if (rank < 0 || rank >= lists.length || !Number.isInteger(rank)) {
      return [rankProblem(`rank ${rank} lies outside the ${lists.length} ranks`, lists)];
    }
    if (count === 0) return [rankProblem(`rank ${rank} has no command list`, lists)];
    return count === 1 ? [] : [rankProblem(`rank ${rank} has ${count} command lists`, lists)];
  });
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
