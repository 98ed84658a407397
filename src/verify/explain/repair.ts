/**
 * Finds the smallest insertion of orders that makes a Program correct, and checks it by verifying the result. Every
 * conflict names its missing order. Of the orders between the same two streams, those implied by another are dropped,
 * then each that turns out not to be needed. What no order fixes (a deadlock, a read of unwritten bytes) has no repair.
 */
import type { SlotId } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import { commandIndex, createGraph, type Graph, nodeKinds } from "../order/graph.ts";
import { type Insertion, insertOrders, type Order, type OrderEnd } from "./insert-order.ts";

export interface Repair {
  /** The Program with the insertions; it verifies. */
  readonly program: Program;
  readonly insertions: readonly Insertion[];
}

/** What a Program lacks. */
export interface Missing {
  /** Orders, as pairs of visits. */
  readonly orders: readonly (readonly [number, number])[];
  /** Slots with a signal that nothing waits for. */
  readonly waits: readonly SlotId[];
}

/** What `repairProgram` needs from the verifier; null if something is wrong that no insertion fixes. */
export type FindMissing = (program: Program) => Missing | null;

/** Rounds of insertions: an order can uncover another mistake. */
const mostRounds = 4;
/** Up to this many insertions, and this many commands to verify, each insertion is tested for being needed. */
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
    // A wait may fix what orders would, so waits come first.
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
 * Before the command that may come too early for the signalling rank, if there is one; else at the end of the waiting
 * rank's list.
 */
function waitFor({ slots, ranks }: Program, slot: SlotId, wanted: readonly Order[]): Order {
  const { signaller, waiter } = at(slots, slot);
  const [needs] = wanted
    .filter((order) => order.kind === "order" && order.from.rank === signaller && order.to.rank === waiter)
    .sort((a, b) => a.to.command - b.to.command);
  const end = { rank: waiter, stream: 0, command: at(ranks, waiter).commands.length };
  return { kind: "take", slot, to: needs?.to ?? end };
}

/** Drops every order without which the rest suffices. */
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
 * By rank: the original position of each command of the list with insertions; for an inserted one, that of the next
 * command.
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
 * The order that a pair of visits lacks. The next run follows the end of this one's list on the same stream, so an
 * order into it is an order into the list's end. Null if the two are on one rank in the wrong order, which no event
 * fixes.
 */
function orderOf(graph: Graph, back: readonly (readonly number[])[], [a, b]: readonly [number, number]): Order | null {
  const { nodeCount, program } = graph;
  const [from, to] = [endOf(graph, back, a), endOf(graph, back, b)];
  const end = at(program.ranks, to.rank).commands.length;
  if (Math.floor(a / nodeCount) < Math.floor(b / nodeCount)) {
    // What the caller does after this run, it does before the next one's list.
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
