/** The trace of a run by command, and when the data of a transfer began to move. */
import type { LinkedTransfer, Program } from "../commands/program.ts";
import { at } from "../support/invariant.ts";
import type { TraceEvent } from "./event.ts";

/** The event of a command; undefined where the back end traced none, such as for a rank of another process. */
export type EventOf = (rank: number, command: number) => TraceEvent | undefined;

export function eventTable({ ranks }: Program, events: readonly TraceEvent[]): EventOf {
  const rows = ranks.map((): (TraceEvent | undefined)[] => []);
  for (const event of events) at(rows, event.rank)[event.command] = event;
  return (rank, command) => at(rows, rank)[command];
}

/** Milliseconds from the start of the run. */
export type MovingSince = (event: TraceEvent) => number;

/**
 * Since when the data of a transfer moves: from its start (the arrival of its rank) until then it waits for other members. That is
 * the last arrival of those it meets, all members of a collective and the direct partners in a group, as far as they came
 * before its own end: a library may let a member go early. Of other commands, and of members that met nobody, their start.
 */
export function movingSince(program: Program, eventOf: EventOf): MovingSince {
  const since = program.ranks.map((): number[] => []);
  for (const transfer of program.transfers) {
    const own = transfer.members.map(({ rank, command }) => eventOf(rank, command));
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

/** Per member of a group, the positions of those it sends to or receives from. */
function partnerLists({ members, edges }: Extract<LinkedTransfer, { readonly kind: "group" }>): readonly number[][] {
  const lists = members.map((): number[] => []);
  for (const { from, to } of edges) {
    at(lists, from).push(to);
    at(lists, to).push(from);
  }
  return lists;
}
