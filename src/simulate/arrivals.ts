/**
 * Which participants of a transfer can start, and when, as the ranks arrive one after the other. An arrival costs a
 * step per direct peer; only the last one of a collective looks at all of them.
 */
import type { LinkedTransfer, Program } from "../commands/program.ts";
import { at, invariant } from "../support/invariant.ts";

export interface Starting<Queue> {
  readonly queue: Queue;
  /** The position of its command in its rank's list. */
  readonly index: number;
  /** When the last participant that it needs has arrived. */
  readonly start: number;
}

export interface Arrivals<Queue> {
  /**
   * The command at `index` of `rank` arrives at `time`. A participant of a collective needs all others, a participant
   * of a group its direct peers.
   */
  arrive(rank: number, index: number, queue: Queue, time: number): readonly Starting<Queue>[];
}

/** The arrivals at one transfer, by position among its participants. */
interface Meeting<Queue> {
  /** Returns the participants that can start: first the one that has arrived, then its peers. */
  readonly arrive: (position: number, queue: Queue, time: number) => readonly Starting<Queue>[];
}

export function createArrivals<Queue>({ ranks, transfers }: Program): Arrivals<Queue> {
  const positions = ranks.map(({ commands }) => new Int32Array(commands.length));
  for (const { participants } of transfers) {
    for (const [position, { rank, command }] of participants.entries()) at(positions, rank)[command] = position;
  }
  const meetings = transfers.map((): Meeting<Queue> | null => null);
  return {
    arrive: (rank, index, queue, time) => {
      const id = at(at(ranks, rank).transferOf, index);
      invariant(id !== null, "a transfer of a linked Program is matched", { rank, index });
      const transfer = at(transfers, id);
      const meeting = meetings[id] ?? (transfer.kind === "collective" ? allOf(transfer) : peersIn(transfer));
      meetings[id] = meeting;
      return meeting.arrive(at(at(positions, rank), index), queue, time);
    },
  };
}

function allOf<Queue>({ participants }: LinkedTransfer): Meeting<Queue> {
  const present = participants.map((): Queue | null => null);
  let missing = participants.length;
  let last = -Infinity;
  return {
    arrive: (own, queue, time) => {
      present[own] = queue;
      last = Math.max(last, time);
      if (--missing > 0) return [];
      const start = (position: number): readonly Starting<Queue>[] => {
        const waiting = present[position];
        if (waiting === null || waiting === undefined) return [];
        return [{ queue: waiting, index: at(participants, position).command, start: last }];
      };
      return [...start(own), ...participants.flatMap((_, other) => (other === own ? [] : start(other)))];
    },
  };
}

function peersIn<Queue>({ participants, edges }: Extract<LinkedTransfer, { readonly kind: "group" }>): Meeting<Queue> {
  const peers = participants.map(() => new Set<number>());
  for (const { from, to } of edges) {
    if (from === to) continue;
    at(peers, from).add(to);
    at(peers, to).add(from);
  }
  const present = participants.map((): Queue | null => null);
  const missing = peers.map(({ size }) => size + 1);
  const last = participants.map(() => -Infinity);
  return {
    arrive: (own, queue, time) => {
      present[own] = queue;
      return [own, ...at(peers, own)].flatMap((each) => {
        last[each] = Math.max(at(last, each), time);
        missing[each] = at(missing, each) - 1;
        const waiting = present[each];
        if (at(missing, each) > 0 || waiting === null || waiting === undefined) return [];
        return [{ queue: waiting, index: at(participants, each).command, start: at(last, each) }];
      });
    },
  };
}
