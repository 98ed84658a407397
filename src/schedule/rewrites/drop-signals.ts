/**
 * Leaves out signals, and the waits for them, where other signals already order everything. Each loop signals that its
 * memory is ready and that its data has arrived, but what a rank has learned from one signal it need not learn again.
 *
 *     ready, copy 1, arrived, ready, copy 2, arrived     ->     ready, copy 1, arrived, copy 2, arrived
 *
 * A wait stays if an access comes after it because of what it guarantees, or if the end of a run does. Whether the
 * others order nothing is then read off the list without them; if it orders less, the list stays as it was.
 */
import type { Command, SlotId } from "../../commands/command.ts";
import type { Program, RankProgram } from "../../commands/program.ts";
import { makeId, at, getOrMake } from "../../support/invariant.ts";
import { createDraftReader, type ReadProgram } from "../draft/draft-reader.ts";
import { type DraftNode, replaceNodes } from "../draft/draft.ts";
import { editRanks } from "../draft/edit-ranks.ts";
import { type ListOrder, listOrder } from "../draft/order/list-order.ts";
import type { Done } from "../draft/order/signal-guarantees.ts";
import { touchesConflict } from "../draft/memory/touch.ts";
import type { DraftMemory } from "../draft/memory/memory.ts";
import { programRewrite, type Rewrite } from "../rewrite.ts";

export const dropSignals: Rewrite<true> = programRewrite((program, _, reader = createDraftReader()) => {
  const before = reader.read(program);
  const needless = needlessSlots(program, before);
  if (needless.size === 0) return program;
  const isNeedless = ({ command }: DraftNode): boolean =>
    (command.kind === "signal" || command.kind === "waitSignal") && needless.has(command.slot);
  const without = editRanks(program, reader, (draft) => {
    const removed = draft.nodes.filter(isNeedless).map(({ id }): [number, readonly DraftNode[]] => [id, []]);
    return removed.length === 0 ? draft : { ...draft, nodes: replaceNodes(draft.nodes, new Map(removed)) };
  });
  const dropped = withoutSlots(without, needless);
  const group = reader.symmetry(program);
  const isAlike = group !== null && group === reader.symmetry(without);
  if (isAlike) reader.keepSymmetry(dropped, group);
  const representativeOf = isAlike ? before.representativeOf : (rank: number): number => rank;
  const ranks = [...new Set(program.ranks.map(({ rank }) => representativeOf(rank)))];
  const [orders, left] = [ordersOf(before, ranks), ordersOf(reader.read(dropped), ranks)];
  const isSame = orders.length === left.length && orders.every((order, i) => order === left[i]);
  return isSame && slotsAreFree(dropped, representativeOf) ? dropped : program;
});

/**
 * Slots whose wait neither an access nor the end of a run needs. None if a slot is used more than once in a run, or if a
 * signal guarantees too much to say what.
 */
function needlessSlots({ ranks, slots }: Program, read: ReadProgram): ReadonlySet<SlotId> {
  const { representatives, representativeOf, draftOf } = read;
  const uses = new Map<SlotId, number>();
  for (const { commands } of ranks)
    for (const command of commands)
      if (command.kind === "signal" || command.kind === "waitSignal")
        uses.set(command.slot, (uses.get(command.slot) ?? 0) + 1);
  if (uses.size < slots.length || [...uses.values()].some((count) => count !== 2)) return new Set();
  const isUnknown = ({ command, guarantee }: DraftNode): boolean => command.kind === "waitSignal" && guarantee === null;
  if (representatives.some((rank) => draftOf(rank).nodes.some(isUnknown))) return new Set();
  /** By representative: the positions of waits that are needed. */
  const needed = new Map(representatives.map((rank) => [rank, neededWaits(draftOf(rank).nodes)]));
  const needless = new Set(slots.map(({ id }) => id));
  for (const { rank, commands } of ranks) {
    for (const position of needed.get(representativeOf(rank)) ?? []) {
      const command = at(commands, position);
      if (command.kind === "waitSignal") needless.delete(command.slot);
    }
  }
  return needless;
}

/** The positions in the list of waits that an access or the end of a run needs. */
function neededWaits(nodes: readonly DraftNode[]): ReadonlySet<number> {
  const needed = new Set<number>();
  const relied = new Set(nodes.flatMap(({ sync }) => sync));
  const known = new Set<Done>();
  const keep = ({ sources, guarantee }: DraftNode): void => {
    for (const source of sources) needed.add(source);
    for (const each of guarantee?.done ?? []) known.add(each);
  };
  const waits = nodes.filter(({ command }) => command.kind === "waitSignal");
  for (const wait of waits) if (relied.has(wait.id)) keep(wait);
  for (const wait of waits.toReversed()) if (wait.guarantee?.done.some((each) => !known.has(each)) === true) keep(wait);
  return needed;
}

/** The Program without slots that no command uses any more. */
function withoutSlots(program: Program, needless: ReadonlySet<SlotId>): Program {
  const kept = program.slots.filter(({ id }) => !needless.has(id));
  const idOf = new Map(kept.map(({ id }, index) => [id, makeId<SlotId>(index)]));
  const renumbered = (command: Command): Command =>
    command.kind === "signal" || command.kind === "waitSignal"
      ? { ...command, slot: idOf.get(command.slot) ?? command.slot }
      : command;
  return {
    ...program,
    slots: kept.map((slot, index) => ({ ...slot, id: makeId<SlotId>(index) })),
    ranks: program.ranks.map((rank): RankProgram => ({ ...rank, commands: rank.commands.map(renumbered) })),
  };
}

/**
 * What each access of a rank comes after, and what the end of a run does, of what other ranks do: one text each, in
 * ascending order.
 */
function ordersOf({ draftOf, newMemory }: ReadProgram, ranks: readonly number[]): readonly string[] {
  const memory = newMemory();
  return ranks
    .flatMap((rank) => {
      const { nodes } = draftOf(rank);
      const waits = new Map(nodes.flatMap((node) => (node.command.kind === "waitSignal" ? [[node.id, node]] : [])));
      const ends = new Set([...waits.values()].flatMap(({ guarantee }) => guarantee?.done ?? []));
      return [
        `${rank} ends ${textOf([...ends])}`,
        ...nodes.flatMap((node) => (node.sync.length === 0 ? [] : `${rank} ${orderOf(node, rank, waits, memory)}`)),
      ];
    })
    .sort();
}

function orderOf(
  { command, sync }: DraftNode,
  rank: number,
  waits: ReadonlyMap<number, DraftNode>,
  memory: DraftMemory,
): string {
  const touches = memory.touches(command);
  const guarantees = sync.flatMap((id) => waits.get(id)?.guarantee ?? []);
  const done = new Set(guarantees.flatMap((each) => each.done.filter((other) => touchesConflict([other], touches))));
  const ready = new Set(
    guarantees.flatMap(({ senders }) =>
      touches.flatMap((touch) => (touch.rank !== rank && senders.has(touch.rank) ? touch.rank : [])),
    ),
  );
  return `${JSON.stringify(touches)} after ${textOf([...done])} and ${[...ready].sort((a, b) => a - b).join(" ")}`;
}

function textOf(done: readonly Done[]): string {
  return done
    .map(({ by, place, start, end, bytes, dims, writes }) =>
      JSON.stringify([by, place, start, end, bytes, dims, writes]),
    )
    .sort()
    .join(" ");
}

/**
 * Whether no rank signals a slot again, in the next run, before the wait of this run has ended: it waits before for a
 * signal that the other rank sends in the same run, or its run ends after a signal that follows the wait.
 */
function slotsAreFree({ ranks, slots }: Program, representativeOf: (rank: number) => number): boolean {
  const orders = new Map<number, ListOrder>();
  const orderOf = (rank: number): ListOrder => {
    const representative = representativeOf(rank);
    return getOrMake(orders, representative, () => listOrder(at(ranks, representative)));
  };
  const places = slots.map(() => ({ signal: -1, wait: -1 }));
  for (const { commands } of ranks) {
    for (const [position, command] of commands.entries()) {
      if (command.kind === "signal") at(places, command.slot).signal = position;
      else if (command.kind === "waitSignal") at(places, command.slot).wait = position;
    }
  }
  return slots.every(({ signaller, waiter }, slot) => {
    if (representativeOf(signaller) !== signaller) return true;
    const { signal, wait } = at(places, slot);
    return slots.some((other, answer) => {
      if (other.signaller !== waiter || other.waiter !== signaller) return false;
      const back = at(places, answer);
      return orderOf(signaller).before(back.wait, signal) || orderOf(waiter).before(wait, back.signal);
    });
  });
}
