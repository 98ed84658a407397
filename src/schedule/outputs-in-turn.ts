/**
 * Puts all that the first output needs, on any rank, before what only the second one needs, and so on. Loops that lowering has joined
 * come apart again: the sum and the gather of one output run while the products of the next are computed.
 *
 *     product a1, b1, send a1, b1, product a2, b2, send a2, b2, sum a, sum b, gather a, gather b
 *     ->  product a1, send a1, product a2, send a2, sum a, gather a, product b1, send b1, product b2, send b2, sum b, gather b
 *
 * A command's turn is the first output that depends on it, here or on a peer, through memory and through signals. What a command
 * depends on has no later turn, so that a stable sort by turns keeps every order that matters, between ranks, too.
 */
import type { SlotId } from "../commands/command.ts";
import { at } from "../support/invariant.ts";
import { dependencesOf } from "./dependences.ts";
import type { Draft } from "./draft.ts";
import { type EditContext, editRanks } from "./edit-ranks.ts";
import { type Touch, touchesMeet } from "./memory.ts";
import type { Rewrite } from "./rewrite.ts";

export const outputsInTurn: Rewrite<true> = {
  name: "outputs-in-turn",
  run: (program) => {
    let turns: readonly (readonly number[])[] | null = null;
    return editRanks(program, (draft, context) => {
      turns ??= turnsOf(context);
      return inTurn(draft, at(turns, draft.rank));
    });
  },
};

function inTurn(draft: Draft, turns: readonly number[]): Draft {
  const { nodes } = draft;
  const isSorted = turns.every((turn, position) => position === 0 || at(turns, position - 1) <= turn);
  if (isSorted) return draft;
  const order = nodes.map((_, position) => position).sort((a, b) => at(turns, a) - at(turns, b) || a - b);
  return { ...draft, nodes: order.map((position) => at(nodes, position)) };
}

/** By rank and position: the first output that needs the node; behind all outputs what none needs. */
function turnsOf(context: EditContext): readonly (readonly number[])[] {
  const { drafts, memory } = context;
  const starts: number[] = [];
  let count = 0;
  for (const { nodes } of drafts) {
    starts.push(count);
    count += nodes.length;
  }
  const before = drafts.flatMap(({ nodes }, rank) =>
    dependencesOf(nodes, memory).map((others) => others.map((other) => at(starts, rank) + other)),
  );
  for (const [earlier, later] of meetings(drafts, starts)) before[later] = [...at(before, later), earlier];

  const writers = drafts.flatMap(({ nodes }) =>
    nodes.map(({ command }) => memory.touches(command).filter(({ writes }) => writes)),
  );
  const outputs = outputTouches(context);
  const turns = writers.map(() => outputs.length);
  for (const [turn, places] of outputs.entries()) {
    // What has an earlier turn has passed it on already.
    const open = writers.flatMap((touches, node) =>
      at(turns, node) > turn && touches.some((touch) => places.some((place) => touchesMeet(touch, place)))
        ? [node]
        : [],
    );
    for (const node of open) turns[node] = turn;
    for (let node = open.pop(); node !== undefined; node = open.pop()) {
      for (const other of at(before, node)) {
        if (at(turns, other) <= turn) continue;
        turns[other] = turn;
        open.push(other);
      }
    }
  }
  return drafts.map(({ nodes }, rank) => turns.slice(at(starts, rank), at(starts, rank) + nodes.length));
}

/** Pairs of a signal and the wait that it ends, and, both ways round, of members of a transfer. */
function meetings(drafts: readonly Draft[], starts: readonly number[]): readonly (readonly [number, number])[] {
  const signals = new Map<SlotId, number[]>();
  const waits = new Map<SlotId, number[]>();
  const members = new Map<number, number[]>();
  for (const { rank, nodes } of drafts) {
    for (const [position, { command, transfer }] of nodes.entries()) {
      const node = at(starts, rank) + position;
      if (command.kind === "signal") append(signals, command.slot, node);
      if (command.kind === "waitSignal") append(waits, command.slot, node);
      if (command.kind === "transfer" && transfer !== null) append(members, transfer, node);
    }
  }
  const pairs: (readonly [number, number])[] = [];
  for (const [slot, ends] of waits) {
    for (const [n, wait] of ends.entries()) {
      const signal = signals.get(slot)?.[n];
      if (signal !== undefined) pairs.push([signal, wait]);
    }
  }
  // A ring through all members of a transfer: each is as urgent as the others.
  for (const ring of members.values()) {
    for (const [i, node] of ring.entries()) pairs.push([node, at(ring, (i + 1) % ring.length)]);
  }
  return pairs;
}

function append<K>(lists: Map<K, number[]>, key: K, value: number): void {
  const list = lists.get(key) ?? [];
  lists.set(key, list);
  list.push(value);
}

/** By position in the list of outputs: where it lies on the ranks. */
function outputTouches({ memory }: EditContext): readonly (readonly Touch[])[] {
  const outputs: Touch[][] = [];
  for (const { id, role, position } of memory.buffers) {
    if (role !== "output" || position === null) continue;
    while (outputs.length <= position) outputs.push([]);
    at(outputs, position).push(memory.wholeBuffer(id));
  }
  return outputs;
}
