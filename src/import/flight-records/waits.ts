/**
 * Who waits for whom: each rank's oldest unfinished transfers are followed to what they wait for, until something that
 * waits for nothing that is recorded, or a cycle.
 */
import { at, pushTo } from "../../support/invariant.ts";
import type { Issued, TorchRank } from "./issued.ts";
import type { Peer, Transfers } from "./peers.ts";

/** What a transfer waits for. */
export type FlightObstacle =
  /** Another transfer of the peer. By the order of a queue it is certain; else the peer's host or device may wait. */
  | { readonly kind: "transfer"; readonly issued: Issued; readonly by: "queue" | "host" | "device" }
  /** The ranks of a group issue different collectives. */
  | { readonly kind: "disagreement"; readonly issued: Issued }
  /** The rank has not issued its side, and no unfinished transfer holds it up. */
  | { readonly kind: "not issued"; readonly rank: number; readonly awaited: Issued }
  /** The rank has issued its side, which has not started: its inputs are not there. */
  | { readonly kind: "not started"; readonly rank: number; readonly awaited: Issued; readonly issued: Issued }
  | { readonly kind: "absent"; readonly rank: number }
  | { readonly kind: "unknown"; readonly rank: number }
  /** All ranks have issued it. */
  | { readonly kind: "nothing"; readonly issued: Issued };

/** A cause that waits for nothing, with all transfers that wait for it, directly or not. */
export interface WaitCause {
  readonly obstacles: readonly FlightObstacle[];
  readonly waiters: readonly Issued[];
}

export interface FlightWaits {
  readonly causes: readonly WaitCause[];
  readonly cycles: readonly (readonly WaitEdge[])[];
}

/** `from` waits for `to`. */
export interface WaitEdge {
  readonly from: Issued;
  readonly to: Issued;
  readonly by: "queue" | "host" | "device";
}

/** `disagreed`: whether the ranks of its group disagree on it or on one before it. */
export function flightWaits(transfers: Transfers, disagreed: (issued: Issued) => boolean): FlightWaits {
  const { ranks } = transfers;
  const obstaclesOf = new Map<Issued, readonly FlightObstacle[]>();
  for (const { open } of ranks.values())
    for (const issued of open) obstaclesOf.set(issued, obstacles(issued, transfers, disagreed));
  const waitersOf = new Map<Issued, Issued[]>();
  for (const [issued, all] of obstaclesOf)
    for (const each of all)
      if (each.kind === "transfer") waitersOf.set(each.issued, [...(waitersOf.get(each.issued) ?? []), issued]);
  // Some rank's side of these waits for something else.
  const heldUp = new Set(
    [...obstaclesOf].flatMap(([issued, all]) =>
      all.some(({ kind }) => kind !== "nothing") ? [transferKey(issued)] : [],
    ),
  );
  const awaitedOf = firstAwaited([...obstaclesOf.values()].flat(), transfers);
  const causes = new Map<string, { readonly obstacles: FlightObstacle[]; readonly waiters: Set<Issued> }>();
  for (const [issued, all] of obstaclesOf)
    for (const found of all) {
      const each = found.kind === "not issued" ? (awaitedOf.get(found.rank) ?? found) : found;
      if (each.kind === "transfer" || (each.kind === "nothing" && heldUp.has(transferKey(issued)))) continue;
      const key = keyOf(each);
      const cause = causes.get(key) ?? { obstacles: [], waiters: new Set() };
      if (!cause.obstacles.some((known) => isSame(known, each))) cause.obstacles.push(each);
      cause.waiters.add(issued);
      causes.set(key, cause);
    }
  return {
    causes: [...causes.values()].map((cause) => ({
      obstacles: cause.obstacles,
      waiters: withWaiters([...cause.waiters], waitersOf),
    })),
    cycles: cyclesOf(obstaclesOf),
  };
}

function obstacles(
  issued: Issued,
  transfers: Transfers,
  disagreed: (issued: Issued) => boolean,
): readonly FlightObstacle[] {
  if (disagreed(issued)) return [{ kind: "disagreement", issued }];
  const found = transfers.peersOf(issued).flatMap((peer) => obstacleOf(issued, peer, transfers.ranks));
  if (found.length > 0) return found;
  const others = transfers.peersOf(issued).flatMap((peer) => (peer.kind === "issued" ? [peer.issued] : []));
  const forgetful = [issued, ...others].find(
    ({ last, record }) => last.state === "scheduled" && mayHaveForgotten(transfers.ranks.get(record.rank)),
  );
  return [forgetful === undefined ? { kind: "nothing", issued } : { kind: "unknown", rank: forgetful.record.rank }];
}

/** Whether a full buffer may have overwritten an unfinished transfer: the oldest that is left of a queue is one. */
function mayHaveForgotten(rank: TorchRank | undefined): boolean {
  if (rank === undefined || rank.isWhole) return false;
  return rank.open.some((each) => rank.issued.find(({ queue }) => queue === each.queue) === each);
}

function obstacleOf(awaited: Issued, peer: Peer, ranks: ReadonlyMap<number, TorchRank>): readonly FlightObstacle[] {
  switch (peer.kind) {
    case "absent":
    case "unknown":
      return [peer];
    case "not issued": {
      const first = ranks.get(peer.rank)?.open[0];
      if (first !== undefined) return [{ kind: "transfer", issued: first, by: "host" }];
      return [{ kind: "not issued", rank: peer.rank, awaited }];
    }
    case "issued": {
      const { issued } = peer;
      const own = ranks.get(peer.rank);
      const { open = [], hasStarts = false } = own ?? {};
      if (issued.last.state !== "scheduled") return [];
      const before = open.filter(({ index }) => index < issued.index);
      const ahead = before.find(({ queue }) => queue === issued.queue);
      if (ahead !== undefined) return [{ kind: "transfer", issued: ahead, by: "queue" }];
      if (before.length > 0) return [{ kind: "transfer", issued: at(before, 0), by: "device" }];
      if (mayHaveForgotten(own)) return [{ kind: "unknown", rank: peer.rank }];
      return hasStarts ? [{ kind: "not started", rank: peer.rank, awaited, issued }] : [];
    }
  }
}

type NotIssued = Extract<FlightObstacle, { readonly kind: "not issued" }>;

/**
 * Of the transfers that others wait for a rank to issue, the one that it issues first. One is later than another if a
 * rank that waits in the other has issued it after that, or not yet.
 */
function firstAwaited(all: readonly FlightObstacle[], { peersOf }: Transfers): ReadonlyMap<number, NotIssued> {
  const awaited = new Map<number, NotIssued[]>();
  for (const each of all) if (each.kind === "not issued") pushTo(awaited, each.rank, each);
  return new Map(
    [...awaited].map(([rank, own]) => {
      const inOrder = own.toSorted((a, b) => a.awaited.index - b.awaited.index);
      const firstOf = new Map<number, string>();
      const later = new Set<string>();
      for (const { awaited: each } of inOrder) {
        const { rank: waiter } = each.record;
        if (firstOf.has(waiter)) later.add(transferKey(each));
        else firstOf.set(waiter, transferKey(each));
      }
      for (const { awaited: each } of inOrder) {
        const lacks = peersOf(each).flatMap((peer) =>
          peer.kind === "not issued" ? (firstOf.get(peer.rank) ?? []) : [],
        );
        if (lacks.some((key) => key !== transferKey(each))) later.add(transferKey(each));
      }
      return [rank, inOrder.find((each) => !later.has(transferKey(each.awaited))) ?? at(inOrder, 0)];
    }),
  );
}

/** Obstacles with the same key are one cause. */
function keyOf(obstacle: Exclude<FlightObstacle, { readonly kind: "transfer" }>): string {
  switch (obstacle.kind) {
    case "not issued":
      return `not issued ${transferKey(obstacle.awaited)}`;
    case "not started":
      return `not started ${transferKey(obstacle.issued)}`;
    case "disagreement":
      return `disagreement ${obstacle.issued.group.key}`;
    case "nothing":
      return `nothing ${transferKey(obstacle.issued)}`;
    case "absent":
    case "unknown":
      return obstacle.kind;
  }
}

function isSame(a: FlightObstacle, b: FlightObstacle): boolean {
  if ("rank" in a && "rank" in b) return a.rank === b.rank;
  return "issued" in a && "issued" in b && a.issued === b.issued;
}

/** A collective is one transfer of all ranks. Sends and recvs are so by pair, and batches of them by group. */
function transferKey(issued: Issued): string {
  return issued.isPointToPoint ? issued.queue : `${issued.group.key}: ${issued.number}`;
}

function withWaiters(of: readonly Issued[], waitersOf: ReadonlyMap<Issued, readonly Issued[]>): readonly Issued[] {
  const reached = new Set(of);
  for (const each of reached) for (const waiter of waitersOf.get(each) ?? []) reached.add(waiter);
  return [...reached];
}

/** Cycles that share no transfer. */
function cyclesOf(obstaclesOf: ReadonlyMap<Issued, readonly FlightObstacle[]>): readonly (readonly WaitEdge[])[] {
  const cycles: (readonly WaitEdge[])[] = [];
  const done = new Set<Issued>();
  for (const start of obstaclesOf.keys()) {
    if (done.has(start)) continue;
    const path: WaitEdge[] = [];
    const onPath = new Map<Issued, number>([[start, 0]]);
    const rest = [edgesOf(start, obstaclesOf)];
    while (rest.length > 0) {
      const edge = rest.at(-1)?.shift();
      if (edge === undefined) {
        rest.pop();
        const last = path.pop();
        done.add(last?.to ?? start);
        if (last !== undefined) onPath.delete(last.to);
        continue;
      }
      if (done.has(edge.to)) continue;
      const place = onPath.get(edge.to);
      if (place === undefined) {
        path.push(edge);
        onPath.set(edge.to, path.length);
        rest.push(edgesOf(edge.to, obstaclesOf));
        continue;
      }
      const cycle = [...path.slice(place), edge];
      if (cycle.some(({ from }) => cycles.some((known) => known.some((other) => other.from === from)))) continue;
      cycles.push(cycle);
    }
  }
  return cycles;
}

function edgesOf(from: Issued, obstaclesOf: ReadonlyMap<Issued, readonly FlightObstacle[]>): WaitEdge[] {
  return (obstaclesOf.get(from) ?? []).flatMap((each) =>
    each.kind === "transfer" ? [{ from, to: each.issued, by: each.by }] : [],
  );
}
