/**
 * Which commands of consecutive runs happen before which: every edge is written down, and the transitive closure of
 * all of them is taken over bit sets.
 */
import type { Command } from "../../../src/commands/command.ts";
import type { Program } from "../../../src/commands/program.ts";
import { at } from "../../../src/support/invariant.ts";

/** One command of one run, or what the caller of a rank does before (writes its inputs) or after it (reads outputs). */
export interface Visit {
  readonly rank: number;
  readonly run: number;
  readonly stream: number;
  /** Position in the rank's list. */
  readonly index: number;
  readonly command: Command | "callerWrites" | "callerReads";
}

/** The visits of each rank in list order, run after run. */
export function visitsOf({ ranks }: Program, runs: number): readonly Visit[] {
  return ranks.flatMap(({ rank, commands }) =>
    Array.from({ length: runs }, (_, run): readonly Visit[] => [
      { rank, run, stream: 0, index: -1, command: "callerWrites" },
      ...commands.map((command, index): Visit => ({ rank, run, stream: command.stream, index, command })),
      { rank, run, stream: 0, index: commands.length, command: "callerReads" },
    ]).flat(),
  );
}

/**
 * eager: a participant of a transfer completes once those have arrived whose data it needs. synchronous: once all have.
 * one queue: synchronous, and each rank runs its list as one queue.
 */
export type Mode = "eager" | "synchronous" | "one queue";

/** A visit has two nodes: 2v is its start, 2v + 1 its end. */
type Edges = number[][];

const start = (visit: number): number => 2 * visit;
const end = (visit: number): number => 2 * visit + 1;

export interface Order {
  /** Whether the first visit has ended before the second starts, in every execution. */
  readonly before: (first: number, second: number) => boolean;
}

/** Null if some visits wait for each other. */
export function orderOf(program: Program, visits: readonly Visit[], mode: Mode): Order | null {
  const predecessors = edgesOf(program, visits, mode);
  const order = topological(predecessors);
  if (order === null) return null;
  const words = Math.ceil(predecessors.length / 32);
  const closure = new Uint32Array(predecessors.length * words);
  for (const node of order) {
    const row = node * words;
    for (const earlier of at(predecessors, node)) {
      for (let w = 0; w < words; w++) closure[row + w] = at(closure, row + w) | at(closure, earlier * words + w);
      const word = row + (earlier >> 5);
      closure[word] = at(closure, word) | (1 << (earlier & 31));
    }
  }
  return {
    before: (first, second) =>
      ((at(closure, start(second) * words + (end(first) >> 5)) >>> (end(first) & 31)) & 1) === 1,
  };
}

/** The predecessors of each node. */
function edgesOf(program: Program, visits: readonly Visit[], mode: Mode): Edges {
  const edges: Edges = Array.from({ length: 2 * visits.length }, () => []);
  const add = (from: number, to: number): void => void at(edges, to).push(from);
  const last = new Map<string, number>();
  const recorded = new Map<string, number>();
  const signals = program.slots.map((): number[] => []);
  const waits = program.slots.map((): number[] => []);
  const visitOf = new Map<string, number>();
  for (const [v, { rank, run, stream, index, command }] of visits.entries()) {
    add(start(v), end(v));
    const queue = mode === "one queue" ? `${rank}` : `${rank} ${stream}`;
    const earlier = last.get(queue);
    if (earlier !== undefined) add(end(earlier), start(v));
    last.set(queue, v);
    visitOf.set(`${run} ${rank} ${index}`, v);
    if (typeof command === "string") continue;
    if (command.kind === "recordEvent") recorded.set(`${run} ${rank} ${command.event}`, v);
    if (command.kind === "signal") at(signals, command.slot).push(v);
    if (command.kind === "waitSignal") at(waits, command.slot).push(v);
  }
  for (const [v, { rank, run, command }] of visits.entries()) {
    if (typeof command === "string" || command.kind !== "waitEvent") continue;
    const record = recorded.get(`${run} ${rank} ${command.event}`);
    if (record !== undefined) add(end(record), end(v));
  }
  for (const [slot, waiting] of waits.entries()) {
    for (const [n, wait] of waiting.entries()) {
      const signal = at(signals, slot)[n];
      if (signal !== undefined) add(end(signal), end(wait));
    }
  }
  const runs = 1 + Math.max(...visits.map(({ run }) => run));
  for (const { participants, ...transfer } of program.transfers) {
    for (let run = 0; run < runs; run++) {
      const members = participants.map(({ rank, command }) => visitOf.get(`${run} ${rank} ${command}`) ?? -1);
      for (const [position, { operation }] of participants.entries()) {
        const own = at(members, position);
        const needed = (other: number): boolean => {
          if (operation.kind === "collective")
            return mode !== "eager" || needs(operation.type, operation.root, position, other);
          return (
            transfer.kind === "group" &&
            transfer.edges.some(
              ({ from, to }) =>
                (from === other && to === position) || (mode !== "eager" && from === position && to === other),
            )
          );
        };
        for (const [other, member] of members.entries()) if (needed(other)) add(start(member), end(own));
      }
    }
  }
  return edges;
}

/** Whether the result of the rank at `position` of the team needs the data of the one at `other`. */
function needs(type: string, root: number | null, position: number, other: number): boolean {
  switch (type) {
    case "Broadcast":
    case "Scatter":
      return other === root;
    case "Reduce":
    case "Gather":
      return position === root;
    default:
      return true;
  }
}

/** Null if there is a cycle. */
function topological(predecessors: Edges): readonly number[] | null {
  const followers = predecessors.map((): number[] => []);
  const open = predecessors.map((list) => list.length);
  for (const [node, list] of predecessors.entries()) for (const earlier of list) at(followers, earlier).push(node);
  const order = open.flatMap((count, node) => (count === 0 ? [node] : []));
  for (let i = 0; i < order.length; i++) {
    for (const node of at(followers, at(order, i))) {
      const left = at(open, node) - 1;
      open[node] = left;
      if (left === 0) order.push(node);
    }
  }
  return order.length === predecessors.length ? order : null;
}
