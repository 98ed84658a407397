/** Joins the findings of one cause: of one added statement, one for each buffer. */
import type { HostProgram } from "../../host/nodes.ts";
import { at } from "../../support/invariant.ts";
import type { Finding } from "../../verify/finding.ts";
import { type Insertion, without } from "./insertion.ts";

/** The findings of host programs; null if they cannot be recorded or linked. */
type FindingsOf = (hosts: readonly HostProgram[]) => readonly Finding[] | null;

/**
 * `hosts` have the insertions, and verify. A finding belongs to the first insertion without which it comes back.
 */
export function byCause(
  findings: readonly Finding[],
  hosts: readonly HostProgram[],
  insertions: readonly Insertion[],
  findingsOf: FindingsOf,
): readonly Finding[] {
  const comesBack =
    insertions.length === 1
      ? []
      : insertions.map(({ statement }) => new Set(findingsOf(without(hosts, statement))?.map(keyOf)));
  const groups = new Map<string, Finding[]>();
  const errors = findings.filter(({ severity }) => severity === "error");
  for (const finding of errors) {
    const cause = comesBack.findIndex((keys) => keys.has(keyOf(finding)));
    const key = `${cause} ${finding.memory?.tensor ?? ""}`;
    groups.set(key, [...(groups.get(key) ?? []), finding]);
  }
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
