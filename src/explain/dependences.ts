/**
 * What each command of a Program waits for: the command before it on its stream, the record of its event, the signal of
 * its slot, the other participants of its transfer. Commands of all ranks have one number each.
 */
import type { Program } from "../commands/program.ts";
import { at, invariant } from "../support/invariant.ts";

export interface Dependences extends Waits {
  /** All commands, each after those that it waits for. Participants of a transfer that need each other are in any order. */
  readonly order: Int32Array;
}

/** Those of any Program, also of one in which commands wait for each other, or for ever. */
export interface Waits {
  /** The number of command 0 of each rank, and after the last rank the number of all commands. */
  readonly first: Int32Array;
  readonly rankOf: (number: number) => number;
  /** The position in its rank's list. */
  readonly indexOf: (number: number) => number;
  /** The command before it on its stream; -1 for a stream's first. */
  readonly previous: Int32Array;
  /** The record of the event, or the signal of the slot, that a wait waits for; -1 for other commands. */
  readonly source: Int32Array;
  /**
   * By transfer participant: the commands whose arrival it needs. Empty for other commands. The participants of a
   * collective have one array, so that what follows from it can be found once for all of them.
   */
  readonly peers: (number: number) => readonly number[];
}

export function dependencesOf(program: Program): Dependences {
  const waits = waitsOf(program);
  invariant(!waits.source.includes(never), "a wait has a signal or a record");
  return { ...waits, order: orderOf(waits.previous, waits.source, waits.peers) };
}

/** The source of a wait for what no command does. */
export const never = -2;

export function waitsOf(program: Program): Waits {
  const first = new Int32Array(program.ranks.length + 1);
  program.ranks.forEach(({ commands }, rank) => {
    first[rank + 1] = at(first, rank) + commands.length;
  });
  const count = at(first, program.ranks.length);
  const ranks = new Int32Array(count);
  const previous = new Int32Array(count).fill(-1);
  const source = new Int32Array(count).fill(-1);
  const raised = program.slots.map((): number[] => []);
  const taken = program.slots.map((): number[] => []);
  for (const { rank, commands, streams, eventCount } of program.ranks) {
    const last = new Int32Array(streams.length).fill(-1);
    const recorded = new Int32Array(eventCount).fill(-1);
    for (const [index, command] of commands.entries()) {
      const number = at(first, rank) + index;
      ranks[number] = rank;
      previous[number] = at(last, command.stream);
      last[command.stream] = number;
      if (command.kind === "recordEvent") recorded[command.event] = number;
      else if (command.kind === "waitEvent") {
        const record = at(recorded, command.event);
        source[number] = record < 0 ? never : record;
      } else if (command.kind === "signal") at(raised, command.slot).push(number);
      else if (command.kind === "waitSignal") at(taken, command.slot).push(number);
    }
  }
  // The n-th wait takes the n-th signal.
  for (const [slot, waits] of taken.entries()) {
    waits.forEach((wait, i) => {
      source[wait] = at(raised, slot)[i] ?? never;
    });
  }
  const peers = peersOf(program, first);
  return {
    first,
    rankOf: (number) => at(ranks, number),
    indexOf: (number) => number - at(first, at(ranks, number)),
    previous,
    source,
    peers,
  };
}

const none: readonly number[] = [];

/** A collective needs all its participants, a participant of a group its direct peers. */
function peersOf({ transfers }: Program, first: Int32Array): Dependences["peers"] {
  const found = new Map<number, readonly number[]>();
  for (const transfer of transfers) {
    const numbers = transfer.participants.map(({ rank, command }) => at(first, rank) + command);
    if (transfer.kind === "collective") {
      for (const number of numbers) found.set(number, numbers);
      continue;
    }
    const needed = numbers.map((number) => new Set([number]));
    for (const { from, to } of transfer.edges) {
      at(needed, from).add(at(numbers, to));
      at(needed, to).add(at(numbers, from));
    }
    numbers.forEach((number, i) => found.set(number, [...at(needed, i)]));
  }
  return (number) => found.get(number) ?? none;
}

/**
 * Depth first, with an explicit stack. A participant needs what its peers wait for, not the peers, so the participants
 * of one transfer form no cycle.
 */
function orderOf(previous: Int32Array, source: Int32Array, peers: Dependences["peers"]): Int32Array {
  const order = new Int32Array(previous.length);
  const state = new Uint8Array(previous.length);
  const [unseen, open, done] = [0, 1, 2];
  let filled = 0;
  const stack: number[] = [];
  /** Arrays of peers that are on the stack, or done. */
  const met = new Set<readonly number[]>();
  const push = (number: number): void => {
    if (number < 0 || state[number] === done) return;
    invariant(state[number] === unseen, "commands of a verified Program do not wait for each other", { number });
    stack.push(number);
  };
  for (let root = 0; root < previous.length; root++) {
    if (state[root] === unseen) stack.push(root);
    while (stack.length > 0) {
      const number = at(stack, stack.length - 1);
      if (state[number] !== unseen) {
        stack.pop();
        if (state[number] === open) order[filled++] = number;
        state[number] = done;
        continue;
      }
      state[number] = open;
      push(at(previous, number));
      push(at(source, number));
      const needed = peers(number);
      if (met.has(needed)) continue;
      met.add(needed);
      for (const peer of needed) if (peer !== number) push(at(previous, peer));
    }
  }
  return order;
}
