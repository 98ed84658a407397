/** What a repair of host programs tries: a `Wait` for each post and a `Synchronize` with each stream, at each place. */
import type { Program, RankProgram } from "../../commands/program.ts";
import type { ExprId, HostProgram, Statement } from "../../host/nodes.ts";
import { scopesOf, walk } from "../../host/traverse.ts";
import { at, groupedBy, unreachable, getOrMake } from "../../support/invariant.ts";
import type { Finding } from "../../verify/finding.ts";
import { bodyOf, type StatementInsertion, type InsertionPlace } from "./insertion.ts";

/** Nearest to the missing orders first. */
export function candidates(hosts: readonly HostProgram[], findings: readonly Finding[]): readonly StatementInsertion[] {
  const rated = alike(hosts).flatMap((ranks) => {
    const host = at(hosts, at(ranks, 0));
    const near = nearby(host, ranks, findings);
    return placesOf(host).flatMap((place) =>
      statementsFor(host)
        .filter((statement) => !isBeside(host, place, statement))
        .map((statement) => ({ insertion: { ranks, place, statement }, far: near(place, statement) })),
    );
  });
  return rated.toSorted((a, b) => a.far - b.far).map(({ insertion }) => insertion);
}

/** Ranks whose programs have the same statements at the same places, up to their operands. */
function alike(hosts: readonly HostProgram[]): readonly (readonly number[])[] {
  const shapes = new Map<HostProgram, string>();
  const shapeOf = (body: readonly Statement[]): string =>
    body.map((each) => `${each.kind}(${scopesOf(each).map(shapeOf).join("|")})`).join(" ");
  const shapeOn = (rank: number): string => {
    const host = at(hosts, rank);
    return getOrMake(shapes, host, () => shapeOf(host.body));
  };
  return [...groupedBy(hosts.keys(), shapeOn).values()];
}

function placesOf(host: HostProgram): readonly InsertionPlace[] {
  const places: InsertionPlace[] = [];
  let order = 0;
  const visit = (body: readonly Statement[], scopes: InsertionPlace["scopes"]): void => {
    for (const [index, statement] of body.entries()) {
      places.push({ scopes, index, order });
      order++;
      for (const [scope, inner] of scopesOf(statement).entries()) visit(inner, [...scopes, { index, scope }]);
    }
    if (body.length > 0) places.push({ scopes, index: body.length, order });
  };
  visit(host.body, []);
  return places;
}

/** A Wait for each post, and a Synchronize with each stream. */
function statementsFor({ body, streams }: HostProgram): readonly Statement[] {
  const posts = new Set<ExprId>();
  let isCoalescing = false;
  for (const statement of walk(body)) {
    if (statement.kind === "StartCoalescing") isCoalescing = true;
    if (statement.kind === "EndCoalescing") {
      isCoalescing = false;
      posts.add(statement.id);
    }
    const isPost =
      statement.kind === "Communication" ||
      statement.kind === "P2PCommunication" ||
      statement.kind === "CollectivePermute";
    if (isPost && !isCoalescing) posts.add(statement.id);
  }
  return [
    ...[...posts].map((target): Statement => ({ kind: "Wait", target })),
    ...streams.map(({ id }): Statement => ({ kind: "Synchronize", stream: id })),
  ];
}

/** Whether the same statement is already the one before or after the place. */
function isBeside(host: HostProgram, place: InsertionPlace, statement: Statement): boolean {
  const body = bodyOf(host, place);
  return [body[place.index - 1], body[place.index]].some((other) => other !== undefined && isSame(other, statement));
}

function isSame(a: Statement, b: Statement): boolean {
  if (a.kind === "Wait" && b.kind === "Wait") return a.target === b.target;
  return a.kind === "Synchronize" && b.kind === "Synchronize" && a.stream === b.stream;
}

/**
 * The distance of a place from the ends of the missing orders, in statements. After a post, a Wait for it is nearer
 * than anything else.
 */
function nearby(
  host: HostProgram,
  ranks: readonly number[],
  findings: readonly Finding[],
): (place: InsertionPlace, statement: Statement) => number {
  const statements = walk(host.body);
  const orderOf = ordersByPath(host);
  const ends = findings.flatMap(({ commands }) => commands.filter(({ rank }) => ranks.includes(rank)));
  const orders = new Set(ends.flatMap(({ path }) => orderOf.get(path.join(".")) ?? []));
  const isPosted = (target: ExprId): boolean =>
    [...orders].some((order) => {
      const post = at(statements, order);
      return "id" in post && post.id === target;
    });
  return ({ order }, statement) => {
    const far = Math.min(
      statements.length,
      ...[...orders].map((end) => Math.min(Math.abs(order - end), Math.abs(order - end - 1))),
    );
    const isLikely = statement.kind === "Wait" ? isPosted(statement.target) : true;
    return far + (isLikely ? 0 : statements.length);
  };
}

/** Paths of origins do not tell the branches of an IfThenElse apart. */
function ordersByPath({ body }: HostProgram): ReadonlyMap<string, readonly number[]> {
  const orders = new Map<string, number[]>();
  let order = 0;
  const visit = (scope: readonly Statement[], path: readonly number[]): void => {
    for (const [index, statement] of scope.entries()) {
      const here = [...path, index];
      const key = here.join(".");
      orders.set(key, [...(orders.get(key) ?? []), order]);
      order++;
      for (const inner of scopesOf(statement)) visit(inner, here);
    }
  };
  visit(body, []);
  return orders;
}

/** People choose a stream and synchronize it at once. */
export function awkward(hosts: readonly HostProgram[], { ranks, place, statement }: StatementInsertion): number {
  const before = bodyOf(at(hosts, at(ranks, 0)), place)[place.index - 1]?.kind;
  return statement.kind === "Synchronize" && before !== "SetCurrentStream" && before !== "Synchronize" ? 1 : 0;
}

// How much of a Program runs in sequence: for each command, the number of launches, copies and transfers on the longest
// chain that ends with it, summed. Fewer orders between commands never give more.

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
