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
 * When the data of a transfer starts to move: at the last arrival of its peers (all ranks of a collective, the direct
 * peers in a group). From its own start (the arrival of its rank) until then it waits. Arrivals after its own end do
 * not count, because a library may let a rank continue early. For other commands, and without peers: their start.
 */
export function movingSince(program: Program, eventOf: EventOf): MovingSince {
  const since = program.ranks.map((): number[] => []);
  for (const transfer of program.transfers) {
    const own = transfer.participants.map(({ rank, command }) => eventOf(rank, command));
    const arrivals = own.flatMap((event) => event?.start ?? []);
    const peers = transfer.kind === "group" ? peerLists(transfer) : null;
    for (const [position, event] of own.entries()) {
      if (event === undefined) continue;
      const met = peers === null ? arrivals : at(peers, position).flatMap((peer) => own[peer]?.start ?? []);
      const last = met.reduce(
        (latest, arrival) => (arrival <= event.end ? Math.max(latest, arrival) : latest),
        event.start,
      );
      at(since, event.rank)[event.command] = last;
    }
  }
  return ({ rank, command, start }) => at(since, rank)[command] ?? start;
}

/** By participant of a group: the positions of the ranks that it sends to or receives from. */
function peerLists({ participants, edges }: Extract<LinkedTransfer, { readonly kind: "group" }>): readonly number[][] {
  const lists = participants.map((): number[] => []);
  for (const { from, to } of edges) {
    at(lists, from).push(to);
    at(lists, to).push(from);
  }
  return lists;
}
