/** Which members of a transfer can continue, and from when, as one after the other arrives. */
import type { LinkedTransfer, Program } from "../commands/program.ts";
import { at, invariant } from "../support/invariant.ts";

export interface Starting<Queue> {
  readonly queue: Queue;
  /** The position of its command in its rank's list. */
  readonly index: number;
  /** When the last member that it needs has arrived. */
  readonly start: number;
}

export interface Meetings<Queue> {
  /**
   * The command at `index` of `rank` arrives at `time`. A member of a collective needs all others, a member of a group
   * its direct peers.
   */
  arrive(rank: number, index: number, queue: Queue, time: number): readonly Starting<Queue>[];
}

export function createMeetings<Queue>({ ranks, transfers }: Program): Meetings<Queue> {
  const partners = transfers.map(partnersOf);
  const arrived = transfers.map(() => new Map<number, { readonly queue: Queue; readonly time: number }>());
  return {
    arrive: (rank, index, queue, time) => {
      const id = at(at(ranks, rank).transferOf, index);
      invariant(id !== null, "a transfer of a linked Program is matched", { rank, index });
      const { participants } = at(transfers, id);
      const present = at(arrived, id);
      const position = participants.findIndex((member) => member.rank === rank && member.command === index);
      present.set(position, { queue, time });
      return [position, ...at(at(partners, id), position)].flatMap((each) => {
        const needed = [each, ...at(at(partners, id), each)];
        const times = needed.flatMap((other) => present.get(other)?.time ?? []);
        const own = present.get(each);
        if (own === undefined || times.length < needed.length) return [];
        return [{ queue: own.queue, index: at(participants, each).command, start: Math.max(...times) }];
      });
    },
  };
}

/** Per member the positions of the others that it meets. */
function partnersOf(transfer: LinkedTransfer): readonly (readonly number[])[] {
  const { participants } = transfer;
  if (transfer.kind === "collective") {
    return participants.map((_, position) => [...participants.keys()].filter((other) => other !== position));
  }
  const meets = participants.map(() => new Set<number>());
  for (const { from, to } of transfer.edges) {
    if (from === to) continue;
    at(meets, from).add(to);
    at(meets, to).add(from);
  }
  return meets.map((each) => [...each]);
}
