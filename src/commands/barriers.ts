/**
 * A kernel that reads or writes peers' memory stands in the middle of a meeting: its signals and waits directly before it and behind it on
 * its stream. A GPU can make them part of the kernel, which waits by itself and tells its peers by itself.
 *
 *     product | signal ready, wait ready, combine, signal done, wait done | product
 */
import type { Command, CommandKind } from "./command.ts";
import type { Program } from "./program.ts";
import { touchesPeers } from "./touches-peers.ts";

/** Positions of neighbours in a list, both inclusive; at least the kernel's own. */
export interface Meeting {
  readonly first: number;
  readonly last: number;
}

/** Of the list of `rank`, in ascending order, none sharing a command with another. */
export function meetingsIn(
  commands: readonly Command[],
  rank: number,
  memory: Pick<Program, "buffers">,
): readonly Meeting[] {
  const meetings: Meeting[] = [];
  for (const [position, command] of commands.entries()) {
    if (!touchesPeers(memory, rank, command)) continue;
    const start = (meetings.at(-1)?.last ?? -1) + 1;
    const is = (other: number, kind: CommandKind): boolean => {
      const neighbour = other < start ? undefined : commands[other];
      return neighbour?.kind === kind && neighbour.stream === command.stream;
    };
    const run = (from: number, step: 1 | -1, kind: CommandKind): number => {
      let end = from;
      while (is(end + step, kind)) end += step;
      return end;
    };
    meetings.push({
      first: run(run(position, -1, "waitSignal"), -1, "signal"),
      last: run(run(position, 1, "signal"), 1, "waitSignal"),
    });
  }
  return meetings;
}
