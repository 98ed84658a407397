/**
 * Joins findings of the same code and statements into one, with their number. A loop with a missing synchronization is
 * then one finding instead of one per iteration and rank. Causes come before their consequences: first inputs that the
 * caller may overwrite, then lifetimes, then conflicts across runs.
 */
import { at } from "../../support/invariant.ts";
import { type Counterexample, counterexamples } from "./counterexamples.ts";
import type { RawFinding } from "./raw-finding.ts";
import type { Finding } from "../finding.ts";
import { type Graph, nodeKinds } from "../order/graph.ts";
import { diagnosticPlace, placeOf, placeText } from "./places.ts";

/** Further findings get no counterexample. */
const mostExplained = 16;

/** An interleaving for mistakes that every order shows. */
const anyOrder = "seed:0\n";

export function toFindings(graph: Graph, raw: readonly RawFinding[], explained: boolean): readonly Finding[] {
  const groups = new Map<string, { readonly finding: RawFinding; occurrences: number }>();
  for (const finding of raw) {
    const key = keyOf(graph, finding);
    const group = groups.get(key);
    const { occurrences = 1 } = finding;
    if (group === undefined) groups.set(key, { finding, occurrences });
    else group.occurrences += occurrences;
  }
  const found = [...groups.values()].toSorted((a, b) => consequence(graph, a.finding) - consequence(graph, b.finding));
  const withEdge = explained ? found.filter(({ finding }) => finding.edge !== null).slice(0, mostExplained) : [];
  const examples = counterexamples(
    graph,
    withEdge.flatMap(({ finding: { edge } }) => (edge === null ? [] : [edge])),
  );
  return found.map((group) =>
    findingOf(graph, group.finding, group.occurrences, examples[withEdge.indexOf(group)] ?? null),
  );
}

/** How far a missing order is from a wrong value; 0 for all other mistakes. */
function consequence({ kind, nodeCount }: Graph, { edge, severity }: RawFinding): number {
  if (edge === null || severity === "note") return 0;
  const [, second] = edge;
  // One run shows inputs that a caller writes too early and, if bytes are shared, the effects of a free.
  if (second >= nodeCount) return kind[second - nodeCount] === nodeKinds.callerWrites ? 1 : 3;
  return edge.some((visit) => kind[visit] === nodeKinds.alloc || kind[visit] === nodeKinds.free) ? 2 : 0;
}

/** Equal for the same mistake in another iteration or on another rank. */
function keyOf(graph: Graph, { code, visits, memory }: RawFinding): string {
  const places = visits.map((visit) => placeOf(graph, visit));
  const [first] = places;
  const statements = places.map(
    ({ kind, path, run, rank }) =>
      `${kind} ${path.join(".")} ${run - (first?.run ?? 0)} ${rank === first?.rank ? "here" : "there"}`,
  );
  return [code, memory?.tensor ?? "", ...statements].join("|");
}

function findingOf(graph: Graph, finding: RawFinding, occurrences: number, example: Counterexample | null): Finding {
  const { code, severity, message, visits, memory, found, expected, help, notes, edge } = finding;
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
    interleaving: example?.interleaving ?? (code === "unwritten-read" ? anyOrder : null),
  };
}
