/**
 * A schedule in which a race shows itself: all that comes before the second command, then the second, and only then, in the machine's own order, the
 * first. Its lines are steps, RANK:STREAM (docs/command-line.md); transfers are eager, as far as the second command's past needs.
 */
import { at } from "../support/invariant.ts";
import type { Past } from "./captures.ts";
import { chainLength, type Graph, nodeKinds } from "./graph.ts";
import type { Members } from "./members.ts";
import { placeOf, placeText } from "./places.ts";

/** What a schedule runs: all in the pasts, then the second of the two. */
export interface ScheduleRequest {
  readonly first: number;
  readonly second: number;
  /** What comes before the visits: of `second`, and of the members whose data it needs if it is a transfer. */
  readonly pasts: ReadonlyMap<number, Past>;
}

/** The visits whose pasts a schedule asks for. */
export function visitsFor({ kind, argument, members }: Graph, second: number): readonly number[] {
  if (kind[second] !== nodeKinds.transfer) return [second];
  return [second, ...sourcesOf(members, at(argument, second)).map((member) => at(members.node, member))];
}

/** The text of a schedule file, or null where the two are not commands of one run, which a run by itself cannot show. */
export function scheduleText(graph: Graph, { first, second, pasts }: ScheduleRequest): string | null {
  const { nodeCount, kind, chainOf, position } = graph;
  const isCommand = (visit: number): boolean =>
    visit < nodeCount && kind[visit] !== nodeKinds.callerWrites && kind[visit] !== nodeKinds.callerReads;
  if (!isCommand(first) || !isCommand(second)) return null;
  const past = joined(visitsFor(graph, second).flatMap((visit) => pasts.get(visit) ?? []));
  if (at(past, at(chainOf, first)) >= at(position, first)) return null;
  const steps = stepsThrough(graph, past, second);
  if (steps === null) return null;
  return [
    `# ${placeText(placeOf(graph, second))}`,
    `# before ${placeText(placeOf(graph, first))}`,
    "eager",
    ...steps,
    "",
  ].join("\n");
}

function joined(pasts: readonly Past[]): Past {
  const [first, ...rest] = pasts;
  const past = Int32Array.from(first ?? []);
  for (const other of rest)
    for (const [chain, position] of other.entries()) past[chain] = Math.max(at(past, chain), position);
  return past;
}

function sourcesOf(members: Members, member: number): readonly number[] {
  const sources = members.sources[member] ?? null;
  if (sources !== null) return sources;
  const id = at(members.transfer, member);
  const begin = at(members.first, id);
  return Array.from({ length: at(members.first, id + 1) - begin }, (_, i) => begin + i);
}

/** Steps that complete, of every chain, as many nodes as `past` says, then `last`; null if they wait for each other. */
function stepsThrough(graph: Graph, past: Past, last: number): readonly string[] | null {
  const { chains, chainOf, chainStart, chainNodes, kind, argument, members, position: positionOf } = graph;
  const limits = past.map((count, chain) => Math.min(count, chainLength(graph, chain)));
  const lastChain = at(chainOf, last);
  limits[lastChain] = Math.max(at(limits, lastChain), at(positionOf, last));
  const steps: string[] = [];
  const done = new Int32Array(chains.length);
  const recorded = new Set<number>();
  const signals = new Map<number, number>();
  const arrived = new Set<number>();
  /** Members whose arrival completes another one's transfer. */
  const wanted = new Set<number>();
  const add = (chain: number): void => {
    const { rank, stream } = at(chains, chain);
    steps.push(`${rank}:${stream}`);
  };
  const arrive = (chain: number, member: number): void => {
    if (arrived.has(member)) return;
    arrived.add(member);
    add(chain);
  };
  /** Whether the node completes. */
  const run = (chain: number, node: number): boolean => {
    const what = at(argument, node);
    switch (kind[node] ?? nodeKinds.work) {
      case nodeKinds.callerWrites:
      case nodeKinds.callerReads:
        return true;
      case nodeKinds.record:
        recorded.add(what);
        break;
      case nodeKinds.wait:
        if (!recorded.has(what)) return false;
        break;
      case nodeKinds.signal:
        signals.set(what, (signals.get(what) ?? 0) + 1);
        break;
      case nodeKinds.take:
        if ((signals.get(what) ?? 0) === 0) return false;
        signals.set(what, (signals.get(what) ?? 0) - 1);
        break;
      case nodeKinds.transfer:
        arrive(chain, what);
        for (const source of sourcesOf(members, what)) wanted.add(source);
        if (sourcesOf(members, what).some((source) => !arrived.has(source))) return false;
        break;
    }
    add(chain);
    return true;
  };
  for (let moved = true; moved;) {
    moved = false;
    for (let chain = 0; chain < chains.length; chain++) {
      const limit = at(limits, chain);
      const start = at(chainStart, chain);
      const before = steps.length;
      let position = at(done, chain);
      while (position < limit && run(chain, at(chainNodes, start + position))) position++;
      const next = chainNodes[start + position];
      if (position === limit && position < chainLength(graph, chain) && next !== undefined) {
        const member = at(argument, next);
        if (kind[next] === nodeKinds.transfer && wanted.has(member)) arrive(chain, member);
      }
      if (position !== done[chain] || steps.length !== before) moved = true;
      done[chain] = position;
    }
  }
  return chains.every((_, chain) => at(done, chain) === limits[chain]) ? steps : null;
}
