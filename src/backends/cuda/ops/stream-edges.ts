/**
 * Streams of a list that do not start after stream 0's start, or do not end before its end. The planner adds those
 * edges. The host then waits for one stream, and the whole list can be captured into a graph from stream 0. A verified
 * program has no races without them.
 */
import type { Command, CommandStreamId, EventId } from "../../../commands/command.ts";
import { at } from "../../../support/invariant.ts";

interface StreamEdges {
  /** Streams that wait for stream 0 at the start. */
  readonly forks: readonly CommandStreamId[];
  /** Streams that stream 0 waits for at the end. */
  readonly joins: readonly CommandStreamId[];
}

export function missingEdges(commands: readonly Command[]): StreamEdges {
  const active = commands.filter(({ kind }) => kind !== "alloc" && kind !== "free");
  return { forks: forksOf(active), joins: joinsOf(active) };
}

function forksOf(commands: readonly Command[]): readonly CommandStreamId[] {
  const begun = new Set<number>([0]);
  const forks: CommandStreamId[] = [];
  for (const command of commands) {
    if (begun.has(command.stream)) continue;
    begun.add(command.stream);
    // A recordEvent always follows another command of its stream, which has the edge.
    if (command.kind !== "waitEvent") forks.push(command.stream);
  }
  return forks;
}

function joinsOf(commands: readonly Command[]): readonly CommandStreamId[] {
  const ended = new Set<number>([0]);
  const awaited = new Set<EventId>();
  const joins: CommandStreamId[] = [];
  for (let i = commands.length - 1; i >= 0; i--) {
    const command = at(commands, i);
    if (!ended.has(command.stream)) {
      ended.add(command.stream);
      if (command.kind !== "recordEvent" || !awaited.has(command.event)) joins.push(command.stream);
    }
    if (command.kind === "waitEvent") awaited.add(command.event);
  }
  return joins;
}
