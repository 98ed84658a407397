/** What `--scalar` may name: the scalars that host programs use and do not define. */
import { fail } from "../../diagnostics/diagnostic.ts";
import type { HostProgram } from "../../host/nodes.ts";
import { walk } from "../../host/traverse.ts";
import { suggestion } from "../../support/nearest.ts";

/** Throws `option-unknown`. */
export function requireKnownScalars(
  file: string,
  hosts: readonly HostProgram[],
  given: ReadonlyMap<string, number>,
): void {
  if (given.size === 0) return;
  const open = [...new Set(hosts.flatMap(openScalars))];
  const unknown = [...given.keys()].find((name) => !open.includes(name));
  if (unknown === undefined) return;
  fail({
    code: "option-unknown",
    message: `${file} has no open scalar ${unknown}`,
    place: { kind: "option", text: `--scalar ${unknown}=${given.get(unknown)}` },
    found: unknown,
    expected: open.length === 0 ? "no --scalar, since no value is left open" : `one of ${open.join(", ")}`,
    help: suggestion(unknown, open, "give values to open scalars only; sizes are given with --sizes"),
  });
}

/** Recording gives these their values. */
const boundByRuns: readonly string[] = ["rank", "deviceIdx.x", "numberOfStreams"];

/** Names in statements and stream indices that are no loop's index and no extent. */
function openScalars({ body, streams, tensors }: HostProgram): readonly string[] {
  const statements = walk(body);
  const bound = new Set(boundByRuns);
  for (const each of statements) if (each.kind === "ForLoop") bound.add(each.index.name);
  for (const name of namesIn(tensors.map(({ domain }) => domain))) bound.add(name);
  return [...namesIn([body, streams])].filter((name) => !bound.has(name));
}

/** The names of all scalars in a value, whatever its type: nodes are plain data. */
function namesIn(value: unknown, names = new Set<string>()): ReadonlySet<string> {
  if (typeof value !== "object" || value === null) return names;
  if ("kind" in value && "name" in value && (value.kind === "symbol" || value.kind === "named")) {
    names.add(String(value.name));
    return names;
  }
  for (const part of Object.values(value)) namesIn(part, names);
  return names;
}
