/** The trace of a run by command, and the time at which a transfer's data starts to move. */
import type { LinkedTransfer, Program } from "../commands/program.ts";
import { at } from "../support/invariant.ts";
import type { TraceEvent } from "./event.ts";

/** The event of a command; undefined if the back end traced none, for example for a rank of another process. */
export type EventOf = (rank: number, command: number) => TraceEvent | undefined;

export function eventTable({ ranks }: Program, events: readonly TraceEvent[]): EventOf {
  const rows = ranks.map((): (TraceEvent | undefined)[] => []);
  for (const event of events) at(rows, event.rank)[event.command] = event;
  return (rank, command) => at(rows, rank)[command];
}

/** Milliseconds from the start of the run. */
export type MovingSince = (event: TraceEvent) => number;

/**
 * When the data of a transfer starts to move. From its start (the arrival of its rank) until then it waits for other
 * ranks. That is the last arrival of its peers (all ranks of a collective, the direct peers in a group) that came
 * before its own end, because a library may let a rank go early. For other commands, and for members without peers,
 * their start.
 */
export function movingSince(program: Program, eventOf: EventOf): MovingSince {
  const since = program.ranks.map((): number[] => []);
  for (const transfer of program.transfers) {
    const own = transfer.participants.map(({ rank, command }) => eventOf(rank, command));
    const arrivals = own.flatMap((event) => event?.start ?? []);
    const partners = transfer.kind === "group" ? partnerLists(transfer) : null;
    for (const [position, event] of own.entries()) {
      if (event === undefined) continue;
      const met = partners === null ? arrivals : at(partners, position).flatMap((partner) => own[partner]?.start ?? []);
      const last = met.reduce(
        (latest, arrival) => (arrival <= event.end ? Math.max(latest, arrival) : latest),
        event.start,
      );
      at(since, event.rank)[event.command] = last;
    }
  }
  return ({ rank, command, start }) => at(since, rank)[command] ?? start;
}

/** By member of a group: the positions of those it sends to or receives from. */
function partnerLists({
  participants,
  edges,
}: Extract<LinkedTransfer, { readonly kind: "group" }>): readonly number[][] {
  const lists = participants.map((): number[] => []);
  for (const { from, to } of edges) {
    at(lists, from).push(to);
    at(lists, to).push(from);
  }
  return lists;
}
