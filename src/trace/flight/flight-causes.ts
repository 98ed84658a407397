/**
 * Why streams wait: each stream that waits is followed to what it waits for, until a rank or stream that waits for
 * nothing, or a cycle.
 */
import { at } from "../../support/invariant.ts";
import type { FlightPositions, FlightTarget } from "./flight-positions.ts";
import type { FlightStream } from "./flight-text.ts";

/** Ranks or streams that wait for nothing and that streams of other ranks wait for, at the same place of each. */
export interface FlightCause {
  /** All of one kind. */
  readonly targets: readonly FlightTarget[];
  /** The streams that wait for it, those that do so directly first. */
  readonly waiters: readonly FlightStream[];
}

/** `absent`: the ranks without a record. */
export function flightCauses(positions: FlightPositions, absent: readonly number[]): readonly FlightCause[] {
  const waitersOf = reversed(positions);
  const groups = new Map<string, { readonly targets: FlightTarget[]; readonly waiters: Set<FlightStream> }>();
  const add = (target: FlightTarget, waiters: readonly FlightStream[]): void => {
    const key = groupOf(target);
    const group = groups.get(key) ?? { targets: [], waiters: new Set() };
    if (!group.targets.some((known) => isSame(known, target))) group.targets.push(target);
    for (const waiter of waiters) group.waiters.add(waiter);
    groups.set(key, group);
  };
  for (const rank of absent) add({ kind: "absent", rank }, []);
  for (const waiter of positions.unfinished) {
    for (const target of positions.targets(waiter)) {
      if (target.kind !== "stream") add(target, [waiter]);
      else if (positions.targets(target.stream).length === 0 && isAwaitedElsewhere(target.stream, waitersOf))
        add(target, [waiter]);
    }
  }
  return [...groups.values()].map(({ targets, waiters }) => ({
    targets,
    waiters: [...closure([...waiters], waitersOf)],
  }));
}

type WaitersOf = ReadonlyMap<FlightStream, readonly FlightStream[]>;

function reversed({ unfinished, targets }: FlightPositions): WaitersOf {
  const waiters = new Map<FlightStream, FlightStream[]>(unfinished.map((stream) => [stream, []]));
  for (const waiter of unfinished)
    for (const target of targets(waiter)) if (target.kind === "stream") waiters.get(target.stream)?.push(waiter);
  return waiters;
}

/** `streams` and all that wait for them, however indirectly. */
function closure(streams: readonly FlightStream[], waitersOf: WaitersOf): ReadonlySet<FlightStream> {
  const reached = new Set(streams);
  for (const stream of reached) for (const waiter of waitersOf.get(stream) ?? []) reached.add(waiter);
  return reached;
}

/** A stream that only its own rank waits for is at work, but no rank is missing. */
function isAwaitedElsewhere(stream: FlightStream, waitersOf: WaitersOf): boolean {
  return [...closure([stream], waitersOf)].some(({ record }) => record !== stream.record);
}

function groupOf(target: FlightTarget): string {
  if (target.kind !== "stream") return `${target.kind} ${target.kind === "idle" ? target.record.run : ""}`;
  const { record, stream, next } = target.stream;
  const { kind, statement } = at(record.commands, next);
  return `${at(record.streams, stream)} ${kind} ${at(record.statements, statement)} ${record.run}`;
}

function isSame(a: FlightTarget, b: FlightTarget): boolean {
  if (a.kind === "stream" || b.kind === "stream")
    return a.kind === "stream" && b.kind === "stream" && a.stream === b.stream;
  return rankOf(a) === rankOf(b);
}

export function rankOf(target: FlightTarget): number {
  switch (target.kind) {
    case "stream":
      return target.stream.record.rank;
    case "idle":
      return target.record.rank;
    case "absent":
    case "never":
      return target.rank;
  }
}

/** Cycles of streams that wait for one another. */
export function flightCycles({ unfinished, targets }: FlightPositions): readonly (readonly FlightStream[])[] {
  const seen = new Set<FlightStream>();
  const cycles: (readonly FlightStream[])[] = [];
  for (const start of unfinished) {
    const path: FlightStream[] = [];
    for (let next: FlightStream | undefined = start; next !== undefined && !seen.has(next);) {
      seen.add(next);
      path.push(next);
      const all: readonly FlightTarget[] = targets(next);
      const [first] = all.flatMap((target) => (target.kind === "stream" ? [target.stream] : []));
      if (first !== undefined && path.includes(first)) cycles.push(path.slice(path.indexOf(first)));
      next = first;
    }
  }
  return cycles;
}
