/** Which participants of a transfer can start, and when, as the ranks arrive one after the other. */
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

export function createArrivals<Queue>({ ranks, transfers }: Program): Arrivals<Queue> {
  const peers = transfers.map(peersOf);
  const arrived = transfers.map(() => new Map<number, { readonly queue: Queue; readonly time: number }>());
  return {
    arrive: (rank, index, queue, time) => {
      const id = at(at(ranks, rank).transferOf, index);
      invariant(id !== null, "a transfer of a linked Program is matched", { rank, index });
      const { participants } = at(transfers, id);
      const present = at(arrived, id);
      const position = participants.findIndex((each) => each.rank === rank && each.command === index);
      present.set(position, { queue, time });
      return [position, ...at(at(peers, id), position)].flatMap((each) => {
        const needed = [each, ...at(at(peers, id), each)];
        const times = needed.flatMap((other) => present.get(other)?.time ?? []);
        const own = present.get(each);
        if (own === undefined || times.length < needed.length) return [];
        return [{ queue: own.queue, index: at(participants, each).command, start: Math.max(...times) }];
      });
    },
  };
}

/** Per participant: the positions of the participants that it needs. */
function peersOf(transfer: LinkedTransfer): readonly (readonly number[])[] {
  const { participants } = transfer;
  if (transfer.kind === "collective") {
    return participants.map((_, position) => [...participants.keys()].filter((other) => other !== position));
  }
  const needed = participants.map(() => new Set<number>());
  for (const { from, to } of transfer.edges) {
    if (from === to) continue;
    at(needed, from).add(to);
    at(needed, to).add(from);
  }
  return needed.map((each) => [...each]);
}
