/**
 * How much of a Program runs in sequence: for each command, the number of launches, copies and transfers on the longest
 * chain that ends with it, summed. Fewer orders between commands never give more.
 */
import type { Program, RankProgram } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import { unreachable } from "../../support/unreachable.ts";

interface Walker {
  readonly list: RankProgram;
  next: number;
  readonly streams: Map<number, number>;
  readonly events: Map<number, number>;
}

/** Of a Program that the verifier finds no progress problem in: each rank can run its list in order. */
export function depthOf({ ranks }: Program): number {
  const signals = new Map<number, number[]>();
  const arrived = new Map<number, number[]>();
  const walkers = ranks.map((list): Walker => ({ list, next: 0, streams: new Map(), events: new Map() }));
  const taken = new Map<number, number>();
  let sum = 0;
  const step = (walker: Walker): boolean => {
    const command = walker.list.commands[walker.next];
    if (command === undefined) return false;
    const { stream } = command;
    const before = walker.streams.get(stream) ?? 0;
    const after = afterStep(walker, command, before);
    if (after === null) return false;
    walker.streams.set(stream, after);
    sum += after;
    walker.next++;
    return true;
  };
  const afterStep = (walker: Walker, command: RankProgram["commands"][number], before: number): number | null => {
    switch (command.kind) {
      case "recordEvent":
        walker.events.set(command.event, before);
        return before;
      case "waitEvent":
        return Math.max(before, walker.events.get(command.event) ?? 0);
      case "signal":
        signals.set(command.slot, [...(signals.get(command.slot) ?? []), before]);
        return before;
      case "waitSignal": {
        const count = taken.get(command.slot) ?? 0;
        const level = signals.get(command.slot)?.[count];
        if (level === undefined) return null;
        taken.set(command.slot, count + 1);
        return Math.max(before, level);
      }
      case "transfer": {
        const id = at(walker.list.transferOf, walker.next) ?? -1;
        const levels = arrived.get(id) ?? [];
        arrived.set(id, [...levels, before]);
        return Math.max(before, ...levels) + 1;
      }
      case "launch":
      case "copy":
        return before + 1;
      case "alloc":
      case "free":
        return before;
      default:
        return unreachable(command);
    }
  };
  let moved = true;
  while (moved) {
    moved = false;
    for (const walker of walkers) while (step(walker)) moved = true;
  }
  return sum;
}
