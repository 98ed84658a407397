/** The place of a node of the graph in its program, as data and as text. */
import type { Place } from "../../diagnostics/diagnostic.ts";
import { shortStatement } from "../../commands/command-text.ts";
import { at } from "../../support/invariant.ts";
import type { CommandPlace } from "../finding.ts";
import { commandIndex, type Graph } from "../order/graph.ts";

/** `visit` counts nodes over two runs. */
export function placeOf(graph: Graph, visit: number): CommandPlace {
  const { program, nodeCount, rankOf, chains, chainOf } = graph;
  const node = visit % nodeCount;
  const run = Math.floor(visit / nodeCount) + 1;
  const rank = at(rankOf, node);
  const index = commandIndex(graph, node);
  const { commands, origins, streams } = at(program.ranks, rank);
  const { stream } = at(chains, at(chainOf, node));
  const streamName = streams.find(({ id }) => id === stream)?.name ?? `stream ${stream}`;
  const command = commands[index];
  const origin = origins[index];
  if (command === undefined || origin === undefined) {
    const writes = index < 0;
    return {
      rank,
      stream,
      streamName,
      command: null,
      kind: writes ? "callerWrites" : "callerReads",
      statement: writes ? "the caller writes the inputs" : "the caller reads the outputs",
      path: [],
      iteration: [],
      line: null,
      run,
    };
  }
  const { statement, path, iteration } = origin;
  const line = graph.lineOf(rank, path);
  return { rank, stream, streamName, command: index, kind: command.kind, statement, path, iteration, line, run };
}

/** For the `at` of a diagnostic. */
export function diagnosticPlace(place: CommandPlace): Place {
  return { kind: "command", rank: place.rank, stream: place.stream, text: statementText(place) };
}

/** `T2 = matmul(...) (iteration 3)`. */
export function statementText({ statement, iteration }: CommandPlace): string {
  const line = shortStatement(statement);
  return iteration.length === 0 ? line : `${line} (iteration ${iteration.join(", ")})`;
}

/** `rank 0, stream 2 (worker 1), command 12 (launch), line 9, of T2 = matmul(...) (iteration 3)`. */
export function placeText(place: CommandPlace): string {
  const { rank, stream, streamName, command, kind } = place;
  const where = `rank ${rank}, stream ${stream} (${streamName})`;
  if (command === null) return `${where}: ${place.statement}`;
  const line = place.line === null ? "" : `, line ${place.line}`;
  return `${where}, command ${command} (${kind})${line}, of ${statementText(place)}`;
}

/** Compares two places by statements and iterations, in the order in which one program runs them; 0 if equal. */
export function programOrder(a: CommandPlace, b: CommandPlace): number {
  if (a.run !== b.run) return a.run - b.run;
  const ends = endOf(a) - endOf(b);
  if (ends !== 0) return ends;
  const depth = Math.max(a.path.length, b.path.length);
  for (let i = 0; i < depth; i++) {
    const positions = (a.path[i] ?? -1) - (b.path[i] ?? -1);
    if (positions !== 0) return positions;
    const iterations = (a.iteration[i] ?? -1) - (b.iteration[i] ?? -1);
    if (iterations !== 0) return iterations;
  }
  return a.rank === b.rank ? (a.command ?? 0) - (b.command ?? 0) : 0;
}

/** The caller's nodes are at both ends of a run. */
function endOf({ kind }: CommandPlace): number {
  return kind === "callerWrites" ? -1 : kind === "callerReads" ? 1 : 0;
}
