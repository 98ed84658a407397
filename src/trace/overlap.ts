/**
 * How much of a rank's communication ran while its own kernels ran, in one number per rank.
 *
 * At any moment a rank is in any number of these states, and counts once in each however many streams are in it:
 * - kernels: a launch runs.
 * - copies: a copy runs, within the rank or from or to a peer.
 * - transfers: the data of a collective or a group of sends and receives moves, because its rank and its peers have
 * arrived. A launch that combines data in peers' memory counts here too; it is not a kernel that hides communication.
 * - waiting: the rank has arrived at a transfer, and a peer has not.
 * - communication: transfers, or a copy from or to a peer. Waiting is not communication: no kernel can hide a late
 * peer.
 * - hidden: communication and kernels at once.
 */
import { isWork, type WorkKind } from "../commands/command.ts";
import type { Program } from "../commands/program.ts";
import { touchesPeers } from "../commands/barriers.ts";
import { type Interval, intersectionOf, lengthOf, unionOf } from "../support/intervals.ts";
import { at } from "../support/invariant.ts";
import { isLocalCopy, commandPeer } from "./command-work.ts";
import { type TraceEvent, eventTable, movingSince } from "./event-table.ts";

/** Milliseconds in each state; `overlap` is hidden / communication, null without communication. */
export interface RankOverlap {
  readonly rank: number;
  readonly kernels: number;
  readonly copies: number;
  readonly transfers: number;
  readonly waiting: number;
  readonly communication: number;
  readonly hidden: number;
  readonly overlap: number | null;
}

type Busy = "kernels" | "copies" | "transfers";
const states: { readonly [K in WorkKind]: Busy } = {
  launch: "kernels",
  copy: "copies",
  transfer: "transfers",
};

/**
 * How much of each rank's communication its kernels hid, in one run: one entry per rank, in order, in milliseconds. All
 * 0 for a rank that was not traced or has nothing to do.
 */
export function overlapOf(program: Program, events: readonly TraceEvent[]): readonly RankOverlap[] {
  const moving = movingSince(program, eventTable(program, events));
  const spans = program.ranks.map(() => ({
    kernels: new Array<Interval>(),
    copies: new Array<Interval>(),
    transfers: new Array<Interval>(),
    waiting: new Array<Interval>(),
    communication: new Array<Interval>(),
  }));
  for (const event of events) {
    const command = at(at(program.ranks, event.rank).commands, event.command);
    if (!isWork(command.kind)) continue;
    const isLocal = isLocalCopy(program, event.rank, command);
    const state = isLocal ? "copies" : touchesPeers(program, event.rank, command) ? "transfers" : states[command.kind];
    const own = at(spans, event.rank);
    const start = moving(event);
    const span = { start, end: event.end };
    own[state].push(span);
    if (state === "transfers") own.waiting.push({ start: event.start, end: start });
    if (state === "transfers" || commandPeer(program, event.rank, command) !== null) own.communication.push(span);
  }
  return spans.map((own, rank) => {
    const kernels = unionOf(own.kernels);
    const communication = unionOf(own.communication);
    const hidden = lengthOf(intersectionOf(kernels, communication));
    const total = lengthOf(communication);
    return {
      rank,
      kernels: lengthOf(kernels),
      copies: lengthOf(unionOf(own.copies)),
      transfers: lengthOf(unionOf(own.transfers)),
      waiting: lengthOf(unionOf(own.waiting)),
      communication: total,
      hidden,
      overlap: total === 0 ? null : hidden / total,
    };
  });
}

/**
 * `rank 0: kernels 1.20 ms, copies 0.00 ms, transfers 0.80 ms (waiting 0.30 ms); 62 % of communication under kernels`.
 */
export function overlapText({ rank, kernels, copies, transfers, waiting, overlap }: RankOverlap): string {
  const ms = (time: number): string => `${time.toFixed(2)} ms`;
  const share = overlap === null ? "no communication" : `${Math.round(100 * overlap)} % of communication under kernels`;
  const times = `kernels ${ms(kernels)}, copies ${ms(copies)}, transfers ${ms(transfers)} (waiting ${ms(waiting)})`;
  return `rank ${rank}: ${times}; ${share}`;
}
