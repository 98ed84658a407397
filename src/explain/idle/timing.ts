/**
 * When each command of a run started and ended, and which command it waited for last. A trace has the launches, copies
 * and transfers; the commands that only order streams end with the last command that they wait for.
 */
import { isWork } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { at, countWhile, pushTo } from "../../support/invariant.ts";
import { type TraceEvent, eventTable, movingSince } from "../../trace/event-table.ts";
import type { Dependences } from "../dependences.ts";

/** By number of the command. Times are milliseconds. */
export interface CommandTiming {
  readonly dependences: Dependences;
  /** Of a transfer: when its data started to move, because all participants that it needs had arrived. */
  readonly start: Float64Array;
  readonly end: Float64Array;
  readonly isWork: Uint8Array;
  /** The launch, copy or transfer that ended last among those that the command waits for; -1 if it waits for none. */
  readonly after: Int32Array;
  /** When that one ended; 0 without one. */
  readonly ready: Float64Array;
}

/** Work without an event (a rank of another process) takes no time. */
export function timingOf(program: Program, dependences: Dependences, events: readonly TraceEvent[]): CommandTiming {
  const { order, previous, source, peers, rankOf, indexOf } = dependences;
  const count = order.length;
  const start = new Float64Array(count);
  const end = new Float64Array(count);
  const ready = new Float64Array(count);
  const after = new Int32Array(count).fill(-1);
  const work = new Uint8Array(count);
  const eventOf = eventTable(program, events);
  const moving = movingSince(program, eventOf);
  /** The one of some peers before which the last work ended, the first of several: the others end no later. */
  const latest = new Map<readonly number[], number>();
  const latestOf = (needed: readonly number[]): number => {
    const known = latest.get(needed);
    if (known !== undefined) return known;
    let [found, time] = [-1, -Infinity];
    for (const peer of needed) {
      const other = at(previous, peer);
      if (other < 0 || (work[other] !== 1 && at(after, other) < 0)) continue;
      const ended = work[other] === 1 ? at(end, other) : at(ready, other);
      if (ended > time) [found, time] = [other, ended];
    }
    latest.set(needed, found);
    return found;
  };
  for (const number of order) {
    const command = at(at(program.ranks, rankOf(number)).commands, indexOf(number));
    const wait = (other: number): void => {
      if (other < 0) return;
      const worked = work[other] === 1;
      const found = worked ? other : at(after, other);
      const time = worked ? at(end, other) : at(ready, other);
      if (found < 0 || (at(after, number) >= 0 && time <= at(ready, number))) return;
      after[number] = found;
      ready[number] = time;
    };
    wait(at(previous, number));
    wait(at(source, number));
    wait(latestOf(peers(number)));
    if (!isWork(command.kind)) {
      start[number] = end[number] = at(ready, number);
      continue;
    }
    const event = eventOf(rankOf(number), indexOf(number));
    work[number] = 1;
    end[number] = event?.end ?? at(ready, number);
    start[number] = event === undefined ? at(ready, number) : moving(event);
  }
  return { dependences, start, end, isWork: work, after, ready };
}

/** What `entriesOf` gives for each launch, copy and transfer, by key, in the order in which they end. */
export function workByEnd<Key, Value>(
  { isWork, end }: CommandTiming,
  entriesOf: (number: number) => readonly (readonly [Key, Value])[],
): ReadonlyMap<Key, readonly Value[]> {
  const numbers = [...isWork.keys()].filter((number) => isWork[number] === 1);
  numbers.sort((a, b) => at(end, a) - at(end, b));
  const found = new Map<Key, Value[]>();
  for (const number of numbers) {
    for (const [key, value] of entriesOf(number)) {
      pushTo(found, key, value);
    }
  }
  return found;
}

/** The last of some commands, in order of end, that ended by `time` and is not `self`; -1 without one. */
export function lastEnded(numbers: readonly number[], end: Float64Array, time: number, self: number): number {
  const count = countWhile(numbers, (number) => at(end, number) <= time);
  for (let i = count - 1; i >= 0; i--) if (numbers[i] !== self) return at(numbers, i);
  return -1;
}
