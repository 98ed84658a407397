/**
 * Finds the smallest insertion of orders that makes a Program correct, and checks it by verifying the result. Every
 * conflict names its missing order. Among orders between the same two streams, those that another implies are dropped,
 * and then each order that turns out to be unnecessary. A mistake that no order fixes (a deadlock, a read of unwritten
 * bytes) has no repair.
 */
import { commandDetails } from "../../commands/command-text.ts";
import type { SlotId, Command, CommandStreamId, EventId } from "../../commands/command.ts";
import type { Program, RankProgram, Slot } from "../../commands/program.ts";
import { makeId, at, unreachable } from "../../support/invariant.ts";
import { findProblems, isWarning, type Problem } from "../check/find-problems.ts";
import { createRegionTable } from "../check/region-table.ts";
import type { RepairStep } from "../finding.ts";
import { commandIndex, createGraph, type Graph, nodeKinds } from "../order/graph.ts";
import { intendedOrder } from "./conflict-finding.ts";
import { createListWriter, movedTransfer } from "../../commands/list-writer.ts";

export interface Repair {
  /** The Program with the insertions; it verifies. */
  readonly program: Program;
  readonly insertions: readonly Insertion[];
}

/** The orders and waits that a Program lacks. */
export interface Missing {
  /** Orders, as pairs of visits. */
  readonly orders: readonly (readonly [number, number])[];
  /** Slots with a signal that nothing waits for. */
  readonly waits: readonly SlotId[];
}

/** The part of the verifier that `repairProgram` needs. Null if there is a mistake that no insertion fixes. */
export type FindMissing = (program: Program) => Missing | null;

/** Rounds of insertions: an order can uncover another mistake. */
const mostRounds = 4;
/** Up to this many insertions, and this many commands to verify, each insertion is tested for necessity. */
const mostTried = 24;
const mostCommandsTried = 400_000;

/** Null if orders cannot repair the Program. */
export function repairProgram(program: Program, missing: FindMissing): Repair | null {
  let orders: readonly Order[] = [];
  for (let round = 0; round < mostRounds; round++) {
    const { program: next } = insertOrders(program, orders);
    const lacks = missing(next);
    if (lacks === null) return null;
    if (isNothing(lacks)) return smallest(program, orders, missing);
    const graph = createGraph(next);
    const back = oldPlaces(program, orders);
    const wanted = lacks.orders.flatMap((pair) => orderOf(graph, back, pair) ?? []);
    // Waits come first, because a wait may add the missing order.
    const found = lacks.waits.length > 0 ? lacks.waits.map((slot) => waitFor(program, slot, wanted)) : wanted;
    const more = withoutImplied([...orders, ...found]);
    if (found.length === 0 || (more.length === orders.length && more.every((order) => orders.includes(order))))
      return null;
    orders = more;
  }
  return isRight(insertOrders(program, orders).program, missing) ? smallest(program, orders, missing) : null;
}

function isNothing({ orders, waits }: Missing): boolean {
  return orders.length === 0 && waits.length === 0;
}

function isRight(program: Program, missing: FindMissing): boolean {
  const lacks = missing(program);
  return lacks !== null && isNothing(lacks);
}

/**
 * The wait goes before the command that may come too early for the signalling rank, if there is one, otherwise to the
 * end of the waiting rank's list.
 */
function waitFor({ slots, ranks }: Program, slot: SlotId, wanted: readonly Order[]): Order {
  const { signaller, waiter } = at(slots, slot);
  const [needs] = wanted
    .filter((order) => order.kind === "order" && order.from.rank === signaller && order.to.rank === waiter)
    .sort((a, b) => a.to.command - b.to.command);
  const end = { rank: waiter, stream: 0, command: at(ranks, waiter).commands.length };
  return { kind: "take", slot, to: needs?.to ?? end };
}

/** Drops each order that is not needed beside the others. */
function smallest(program: Program, orders: readonly Order[], missing: FindMissing): Repair {
  const commands = program.ranks.reduce((sum, rank) => sum + rank.commands.length, 0);
  let kept = orders;
  if (orders.length <= mostTried && orders.length * commands <= mostCommandsTried) {
    for (const order of orders) {
      const fewer = kept.filter((other) => other !== order);
      if (isRight(insertOrders(program, fewer).program, missing)) kept = fewer;
    }
  }
  return insertOrders(program, kept);
}

/**
 * By rank: the original position of each command of the list with insertions. An inserted command has the position of
 * the next original one.
 */
function oldPlaces(program: Program, orders: readonly Order[]): readonly (readonly number[])[] {
  const { insertions } = insertOrders(program, orders);
  return program.ranks.map(({ rank, commands }) => {
    const places: number[] = [];
    for (let index = 0; index <= commands.length; index++) {
      for (const insertion of insertions) if (insertion.rank === rank && insertion.before === index) places.push(index);
      places.push(index);
    }
    return places;
  });
}

/**
 * The missing order of a pair of visits. The next run follows the end of this run's list on the same stream, so an
 * order into it is an order into the list's end. Null if the two are on one rank in the wrong order, which no event
 * fixes.
 */
function orderOf(graph: Graph, back: readonly (readonly number[])[], [a, b]: readonly [number, number]): Order | null {
  const { nodeCount, program } = graph;
  const [from, to] = [endOf(graph, back, a), endOf(graph, back, b)];
  const end = at(program.ranks, to.rank).commands.length;
  if (Math.floor(a / nodeCount) < Math.floor(b / nodeCount)) {
    // The caller's actions after this run precede the next run's list.
    if (graph.kind[a % nodeCount] === nodeKinds.callerReads) {
      return { kind: "order", from: { ...from, command: -1 }, to };
    }
    return { kind: "order", from, to: { ...to, command: at(at(back, to.rank), end) } };
  }
  if (from.rank === to.rank && from.command >= to.command) return null;
  return { kind: "order", from, to };
}

function endOf(graph: Graph, back: readonly (readonly number[])[], visit: number): OrderEnd {
  const node = visit % graph.nodeCount;
  const rank = at(graph.rankOf, node);
  const index = commandIndex(graph, node);
  const { stream } = at(graph.chains, at(graph.chainOf, node));
  return { rank, stream, command: index < 0 ? -1 : at(at(back, rank), index) };
}

/** An order from a later command to an earlier one, on the same streams, implies the others. */
function withoutImplied(orders: readonly Order[]): readonly Order[] {
  return orders.filter(
    (order, i) => !orders.some((other, j) => i !== j && implies(other, order) && !(implies(order, other) && i < j)),
  );
}

function implies(a: Order, b: Order): boolean {
  if (a.kind === "take" || b.kind === "take") return false;
  return (
    a.from.rank === b.from.rank &&
    a.from.stream === b.from.stream &&
    a.to.rank === b.to.rank &&
    a.to.stream === b.to.stream &&
    a.from.command >= b.from.command &&
    a.to.command <= b.to.command
  );
}

// The orders and waits that a Program lacks, and insertions as the steps of a repair.

/** Null if a problem remains that no order or wait repairs. */
export function missingIn(program: Program): Missing | null {
  const graph = createGraph(program);
  const table = createRegionTable(graph);
  const problems = findProblems(graph, table);
  const orders: (readonly [number, number])[] = [];
  const waits: Missing["waits"][number][] = [];
  const add = (problem: Problem): boolean => {
    switch (problem.kind) {
      case "conflict":
        orders.push(intendedOrder(graph, table, problem));
        return true;
      case "slotMisuse":
        orders.push([problem.before, problem.next]);
        return true;
      case "unbalancedSlot":
        for (let i = problem.waits; i < problem.signals; i++) waits.push(makeId(problem.slot));
        return problem.signals > problem.waits;
      case "needsConcurrency":
        return isWarning(problem);
      case "deadlock":
      case "unwritten":
      case "notAllocated":
      case "freed":
      case "freedTwice":
      case "allocatedTwice":
      case "bytesInUse":
      case "eventNotRecorded":
      case "eventRecordedTwice":
      case "outsideBuffer":
      case "overlappingOperands":
        return false;
      default:
        return unreachable(problem);
    }
  };
  return problems.every(add) ? { orders, waits } : null;
}

export function stepsOf(program: Program, insertions: readonly Insertion[]): readonly RepairStep[] {
  return insertions.map(({ rank, before, command }) => {
    const list = at(program.ranks, rank);
    const details = commandDetails({ ...list, commands: [command], transferOf: [null] }, 0);
    const text = `${command.kind} ${details}`;
    const follower = list.commands[before];
    const place =
      follower === undefined
        ? "at the end of its list"
        : `before command ${before} (${follower.kind} ${commandDetails(list, before)})`;
    const name = list.streams.find(({ id }) => id === command.stream)?.name ?? "";
    return {
      rank,
      stream: command.stream,
      before,
      command: text,
      text: `insert ${text} on rank ${rank}, stream ${command.stream} (${name}), ${place}`,
    };
  });
}

/**
 * One end of an order: a command, as its position in its rank's list. -1 is the start of the list, the list's length
 * its end.
 */
interface OrderEnd {
  readonly rank: number;
  readonly command: number;
  readonly stream: number;
}

type Order =
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

interface Repaired {
  readonly program: Program;
  readonly insertions: readonly Insertion[];
}

/**
 * Adds orders to a linked Program: an event if both commands are on one rank, otherwise a signal on a new slot. If the
 * first command's stream already records an event after it, only the wait is added.
 *
 *   copy         on worker 0          copy           on worker 0
 *                                     recordEvent    on worker 0
 *                                ->   waitEvent      on worker 1
 *   launch       on worker 1          launch         on worker 1
 */
function insertOrders(program: Program, orders: readonly Order[]): Repaired {
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
