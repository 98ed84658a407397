/** The order of one rank's commands that the list's streams and events define. */
import type { RankProgram } from "../../commands/program.ts";
import { at, invariant } from "../../support/invariant.ts";

export interface ListOrder {
  /** Whether the streams and events of the list order one command before another. */
  readonly before: (earlier: number, later: number) => boolean;
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
  return {
    before: (earlier, later) => at(clocks, later * width + at(commands, earlier).stream) >= at(places, earlier),
  };
}
