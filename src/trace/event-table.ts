/** The trace of a run by command, and the time at which a transfer's data starts to move. */
import type { LinkedTransfer, Program } from "../commands/program.ts";
import { at, invariant } from "../support/invariant.ts";

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

/** One command's execution by a back end's clock. Times are milliseconds from the start of the run. */
export interface TraceEvent {
  readonly rank: number;
  readonly stream: number;
  /** Index in the rank's command list. */
  readonly command: number;
  readonly start: number;
  /** For a transfer: when its data had moved, if the back end knows; its stream may continue later. */
  readonly end: number;
  /**
   * For a waitEvent or waitSignal, if the back end knows: when its stream reached it; `start` is when it could
   * continue. If absent: when the command before ended.
   */
  readonly reached?: number;
}

/** The zero of a rank's times on a clock that the ranks share: each GPU has its own clock. */
export interface TraceOrigin {
  readonly rank: number;
  /** Milliseconds. */
  readonly at: number;
  /** The largest error of `at`, in milliseconds. */
  readonly error: number;
}

// Trace events as numbers, which ranks in separate processes send each other.

const numbersPerEvent = 6;

export function numbersOfEvents(events: readonly TraceEvent[]): readonly number[] {
  return events.flatMap(({ rank, stream, command, start, end, reached = NaN }) => [
    rank,
    stream,
    command,
    start,
    end,
    reached,
  ]);
}

export function eventsOfNumbers(numbers: ArrayLike<number>): readonly TraceEvent[] {
  invariant(numbers.length % numbersPerEvent === 0, "events come whole", { numbers: numbers.length });
  return Array.from({ length: numbers.length / numbersPerEvent }, (_, event) => {
    const number = (i: number): number => numbers[event * numbersPerEvent + i] ?? NaN;
    const unpacked = { rank: number(0), stream: number(1), command: number(2), start: number(3), end: number(4) };
    return Number.isNaN(number(5)) ? unpacked : { ...unpacked, reached: number(5) };
  });
}
