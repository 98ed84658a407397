/** A rank's commands as rows, with the lines of its host program and the orders between its streams. */
import { commandDetails } from "../../src/commands/command-text.ts";
import type { Program, RankProgram } from "../../src/commands/program.ts";
import type { LineOf } from "../../src/verify/order/graph.ts";
import { labelOf } from "../../src/report/build/works.ts";
import { at } from "../../src/support/invariant.ts";
import type { CommandRow, RankCommands, StreamEdge } from "./parts.ts";

/** Longer lists are cut: a page shows no more. */
const mostRows = 20_000;

export function commandsOf(program: Program, lineOf: LineOf): readonly RankCommands[] {
  return program.ranks.map((list) => ({
    streams: list.streams.map(({ name }) => name),
    rows: list.commands.slice(0, mostRows).map((command, index): CommandRow => {
      const { kind, stream } = command;
      const { path, iteration } = at(list.origins, index);
      const label = labelOf(program, list.rank, command);
      return { stream, kind, label, text: commandDetails(list, index), line: lineOf(list.rank, path) ?? 0, iteration };
    }),
    edges: edgesOf(list),
  }));
}

/** From the record of each event to its waits. */
function edgesOf({ commands, eventCount }: RankProgram): readonly StreamEdge[] {
  const recorded = new Int32Array(eventCount).fill(-1);
  const edges: StreamEdge[] = [];
  commands.slice(0, mostRows).forEach((command, index) => {
    if (command.kind === "recordEvent") recorded[command.event] = index;
    else if (command.kind === "waitEvent") edges.push({ from: recorded[command.event] ?? -1, to: index });
  });
  return edges.filter(({ from }) => from >= 0);
}
