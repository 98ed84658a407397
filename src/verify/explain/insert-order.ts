/**
 * Adds orders to a linked Program: an event if both commands are on one rank, otherwise a signal on a new slot. If the
 * first command's stream already records an event after it, only the wait is added.
 *
 *   copy         on worker 0          copy           on worker 0
 *                                     recordEvent    on worker 0
 *                                ->   waitEvent      on worker 1
 *   launch       on worker 1          launch         on worker 1
 */
import type { Command, CommandStreamId, EventId, SlotId } from "../../commands/command.ts";
import { createListWriter, movedTransfer } from "../../commands/list-writer.ts";
import type { Program, RankProgram, Slot } from "../../commands/program.ts";
import { makeId } from "../../support/ids.ts";
import { at } from "../../support/invariant.ts";

/**
 * One end of an order: a command, as its position in its rank's list. -1 is the start of the list, the list's length
 * its end.
 */
export interface OrderEnd {
  readonly rank: number;
  readonly command: number;
  readonly stream: number;
}

export type Order =
  /** `from` must complete before `to` starts. On one rank `from` comes before `to`. */
  | { readonly kind: "order"; readonly from: OrderEnd; readonly to: OrderEnd }
  /** Adds a wait before `to` for a signal that nothing waits for. */
  | { readonly kind: "take"; readonly slot: SlotId; readonly to: OrderEnd };

/** A command inserted into a rank's list, before the command at position `before`. */
export interface Insertion {
  readonly rank: number;
  readonly before: number;
  readonly command: Command;
}

export interface Repaired {
  readonly program: Program;
  readonly insertions: readonly Insertion[];
}

export function insertOrders(program: Program, orders: readonly Order[]): Repaired {
  const insertions: Insertion[] = [];
  const slots: Slot[] = [...program.slots];
  const eventCounts = program.ranks.map(({ eventCount }) => eventCount);
  for (const order of orders) {
    const { to } = order;
    if (order.kind === "take") {
      const command: Command = { kind: "waitSignal", stream: streamId(to), slot: order.slot };
      insertions.push({ rank: to.rank, before: to.command, command });
      continue;
    }
    const { from } = order;
    if (from.rank !== to.rank) {
      const slot = makeId<SlotId>(slots.length);
      slots.push({ id: slot, signaller: from.rank, waiter: to.rank });
      insertions.push(
        { rank: from.rank, before: from.command + 1, command: { kind: "signal", stream: streamId(from), slot } },
        { rank: to.rank, before: to.command, command: { kind: "waitSignal", stream: streamId(to), slot } },
      );
      continue;
    }
    let event = recordedAfter(at(program.ranks, from.rank), from, to);
    if (event === null) {
      event = makeId<EventId>(at(eventCounts, from.rank));
      eventCounts[from.rank] = event + 1;
      insertions.push({
        rank: from.rank,
        before: from.command + 1,
        command: { kind: "recordEvent", stream: streamId(from), event },
      });
    }
    insertions.push({ rank: to.rank, before: to.command, command: { kind: "waitEvent", stream: streamId(to), event } });
  }
  return { program: withInsertions(program, insertions, slots, eventCounts), insertions };
}

function streamId({ stream }: OrderEnd): CommandStreamId {
  return makeId<CommandStreamId>(stream);
}

/** An event that the stream of `from` records after it and before `to`. */
function recordedAfter({ commands }: RankProgram, from: OrderEnd, to: OrderEnd): EventId | null {
  for (let index = from.command + 1; index < to.command; index++) {
    const command = at(commands, index);
    if (command.kind === "recordEvent" && command.stream === from.stream) return command.event;
  }
  return null;
}

function withInsertions(
  program: Program,
  insertions: readonly Insertion[],
  slots: readonly Slot[],
  eventCounts: readonly number[],
): Program {
  const edited = program.ranks.map((rank) =>
    editRank(
      rank,
      insertions.filter((insertion) => insertion.rank === rank.rank),
      at(eventCounts, rank.rank),
    ),
  );
  const transfers = program.transfers.map((transfer) =>
    movedTransfer(transfer, (rank, position) => at(at(edited, rank).places, position)),
  );
  return { ...program, ranks: edited.map(({ rank }) => rank), transfers, slots };
}

interface Edited {
  readonly rank: RankProgram;
  /** The new position of each command. */
  readonly places: readonly number[];
}

/** Of several insertions at one position, records and signals come first. */
function editRank(rank: RankProgram, insertions: readonly Insertion[], eventCount: number): Edited {
  const { list, add } = createListWriter();
  const places: number[] = [];
  for (let index = 0; index <= rank.commands.length; index++) {
    const here = insertions.filter(({ before }) => before === index);
    const origin = rank.origins[index] ?? rank.origins.at(-1) ?? { statement: "", path: [], iteration: [] };
    for (const { command } of here.toSorted((a, b) => Number(waits(a.command)) - Number(waits(b.command))))
      add(command, origin);
    const command = rank.commands[index];
    if (command === undefined) break;
    places.push(list.commands.length);
    add(command, origin, rank.transferOf[index]);
  }
  return { rank: { ...rank, ...list, eventCount }, places };
}

function waits({ kind }: Command): boolean {
  return kind === "waitEvent" || kind === "waitSignal";
}
