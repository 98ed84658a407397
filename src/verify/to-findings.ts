/**
 * Drafts as findings: those of the same code and statements are one, the first of them with the number of all, so that a loop with a
 * missing synchronization is one finding and not one per iteration and rank.
 */
import { at } from "../support/invariant.ts";
import { type Counterexample, counterexamples } from "./counterexamples.ts";
import type { Draft } from "./draft.ts";
import type { Finding } from "./finding.ts";
import type { Graph } from "./graph.ts";
import { diagnosticPlace, placeOf, placeText } from "./places.ts";

/** Findings beyond these get no counterexample. */
const mostExplained = 16;

/** A schedule for what every order shows. */
const anyOrder = "seed:0\n";

export function toFindings(graph: Graph, drafts: readonly Draft[], explained: boolean): readonly Finding[] {
  const groups = new Map<string, { readonly draft: Draft; occurrences: number }>();
  for (const draft of drafts) {
    const key = keyOf(graph, draft);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { draft, occurrences: 1 });
    else group.occurrences++;
  }
  const found = [...groups.values()];
  const withEdge = explained ? found.filter(({ draft }) => draft.edge !== null).slice(0, mostExplained) : [];
  const examples = counterexamples(
    graph,
    withEdge.flatMap(({ draft: { edge } }) => (edge === null ? [] : [edge])),
  );
  return found.map((group) =>
    findingOf(graph, group.draft, group.occurrences, examples[withEdge.indexOf(group)] ?? null),
  );
}

/** Equal for the same mistake in another iteration or on another rank. */
function keyOf(graph: Graph, { code, visits, memory }: Draft): string {
  const places = visits.map((visit) => placeOf(graph, visit));
  const [first] = places;
  const statements = places.map(
    ({ kind, path, run, rank }) =>
      `${kind} ${path.join(".")} ${run - (first?.run ?? 0)} ${rank === first?.rank ? "here" : "there"}`,
  );
  return [code, memory?.tensor ?? "", ...statements].join("|");
}

function findingOf(graph: Graph, draft: Draft, occurrences: number, example: Counterexample | null): Finding {
  const { code, severity, message, visits, memory, found, expected, help, notes, edge } = draft;
  const commands = visits.map((visit) => placeOf(graph, visit));
  const last = commands.at(-1);
  const ancestor = example === null || example.ancestor === null ? null : placeOf(graph, example.ancestor);
  const more = occurrences === 1 ? [] : [`and ${occurrences - 1} more of the same statements`];
  const common = ancestor === null ? [] : [`both come after: ${placeText(ancestor)}`];
  return {
    code,
    severity,
    message,
    ...(last === undefined ? {} : { place: diagnosticPlace(last) }),
    found,
    expected,
    help,
    notes: [...notes, ...common, ...more],
    commands,
    occurrences,
    memory,
    ancestor,
    missingEdge: edge === null ? null : { from: placeOf(graph, at(edge, 0)), to: placeOf(graph, at(edge, 1)) },
    schedule: example?.schedule ?? (code === "unwritten-read" ? anyOrder : null),
  };
}
