/** The order of one rank's commands that the list's streams and events define. */
import type { RankProgram } from "../../../commands/program.ts";
import { at, invariant } from "../../../support/invariant.ts";

export interface ListOrder {
  /** Whether the streams and events of the list order one command before another. */
  readonly before: (earlier: number, later: number) => boolean;
  readonly streamOf: (position: number) => number;
  /** How many commands of its stream have completed when it has. */
  readonly placeOf: (position: number) => number;
  /** How many commands of a stream have completed when the command at `position` starts. */
  readonly completed: (position: number, stream: number) => number;
}

/** One clock per command: how many commands of each stream have completed when it starts. */
export function listOrder({ streams, commands }: RankProgram): ListOrder {
  const width = streams.length;
  const clocks = new Int32Array(commands.length * width);
  const places = new Int32Array(commands.length);
  const now = streams.map(() => new Int32Array(width));
  const recorded = new Map<number, Int32Array>();
  for (const [position, command] of commands.entries()) {
    const clock = at(now, command.stream);
    if (command.kind === "waitEvent") {
      const event = recorded.get(command.event);
      invariant(event !== undefined, "a list waits for events that it has recorded", command);
      for (let s = 0; s < width; s++) clock[s] = Math.max(at(clock, s), at(event, s));
    }
    clocks.set(clock, position * width);
    places[position] = at(clock, command.stream) + 1;
    clock[command.stream] = at(places, position);
    if (command.kind === "recordEvent") recorded.set(command.event, clock.slice());
  }
  const streamOf = (position: number): number => at(commands, position).stream;
  const completed = (position: number, stream: number): number => at(clocks, position * width + stream);
  return {
    before: (earlier, later) => completed(later, streamOf(earlier)) >= at(places, earlier),
    streamOf,
    placeOf: (position) => at(places, position),
    completed,
  };
}
