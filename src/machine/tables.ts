/**
 * The constant facts about the runs of one Program: its queues (the streams, or one per rank), their dependences, its
 * transfers, and the layout of the state. All ids are dense, so that the state is one Int32Array that threads can
 * share.
 */
import type { Command, EventId } from "../commands/command.ts";
import type { Program } from "../commands/program.ts";
import { at, invariant } from "../support/invariant.ts";
import { createTransferTables, type TransferTables } from "./transfers/transfer-tables.ts";

/**
 * streams: one queue per stream. ranks: one queue per rank in list order, the smallest number that hardware may have.
 */
export type QueueMode = "streams" | "ranks";

/** Commands of one rank that run in order. */
interface Queue {
  readonly rank: number;
  /** Positions in the rank's list. */
  readonly commands: readonly number[];
}

/** The first word of each kind in the state. */
interface StateLayout {
  /** Per queue: how many of its commands have completed in this run. */
  readonly cursors: number;
  /** Per event: the run in which it was last recorded. */
  readonly events: number;
  /** Per slot: 1 while a signal has not been waited for. */
  readonly slots: number;
  /** Per participant: the run in which it last arrived. */
  readonly arrivals: number;
  /** Per participant: credits received over all runs. */
  readonly credits: number;
  /** Per rendezvous: the number of arrivals over all runs. */
  readonly rendezvous: number;
  readonly words: number;
}

export interface MachineTables extends TransferTables {
  readonly program: Program;
  readonly queues: readonly Queue[];
  /** queueOf[rank][stream]. */
  readonly queueOf: readonly (readonly number[])[];
  /** Events are numbered over all ranks: event e of rank r is eventBase[r] + e. */
  readonly eventBase: readonly number[];
  /** The queues that wait for an event, and for a slot. */
  readonly eventWaiters: readonly (readonly number[])[];
  readonly slotWaiters: readonly (readonly number[])[];
  readonly layout: StateLayout;
}

export function createMachineTables(program: Program, mode: QueueMode): MachineTables {
  const { queues, queueOf } = createQueues(program, mode);
  const eventBase: number[] = [];
  let eventCount = 0;
  for (const rank of program.ranks) {
    eventBase.push(eventCount);
    eventCount += rank.eventCount;
  }
  const eventWaiters = Array.from({ length: eventCount }, () => new Set<number>());
  const slotWaiters = program.slots.map(() => new Set<number>());
  for (const { rank, commands } of program.ranks) {
    for (const command of commands) {
      const queue = at(at(queueOf, rank), command.stream);
      if (command.kind === "waitEvent") at(eventWaiters, at(eventBase, rank) + command.event).add(queue);
      if (command.kind === "waitSignal") at(slotWaiters, command.slot).add(queue);
    }
  }
  const transferTables = createTransferTables(program, (rank, stream) => at(at(queueOf, rank), stream));
  const cursors = firstWord;
  const events = cursors + queues.length;
  const slots = events + eventCount;
  const arrivals = slots + program.slots.length;
  const credits = arrivals + transferTables.participants.length;
  const rendezvous = credits + transferTables.participants.length;
  const words = rendezvous + transferTables.rendezvousCount;
  return {
    ...transferTables,
    program,
    queues,
    queueOf,
    eventBase,
    eventWaiters: eventWaiters.map((set) => [...set]),
    slotWaiters: slotWaiters.map((set) => [...set]),
    layout: { cursors, events, slots, arrivals, credits, rendezvous, words },
  };
}

/** Word 0 is the number of the run. */
const firstWord = 1;

/** The command at position `index` of a rank's list. */
export function commandAt({ program }: MachineTables, rank: number, index: number): Command {
  return at(at(program.ranks, rank).commands, index);
}

/** The participant of the transfer command at position `index` of a rank's list. */
export function participantNumber({ participantOf }: MachineTables, rank: number, index: number): number {
  const participant = at(participantOf, rank).get(index);
  invariant(participant !== undefined, "a transfer command is a participant of a transfer", { rank, index });
  return participant;
}

/** The number of a rank's event over all ranks. */
export function eventNumber({ eventBase }: MachineTables, rank: number, event: EventId): number {
  return at(eventBase, rank) + event;
}

function createQueues(program: Program, mode: QueueMode): Pick<MachineTables, "queues" | "queueOf"> {
  const queues: { readonly rank: number; readonly commands: number[] }[] = [];
  const queueOf = program.ranks.map(({ rank, streams }) => {
    const first = queues.length;
    const count = mode === "ranks" ? 1 : streams.length;
    for (let i = 0; i < count; i++) queues.push({ rank, commands: [] });
    return streams.map((_, stream) => (mode === "ranks" ? first : first + stream));
  });
  for (const { rank, commands } of program.ranks) {
    const own = at(queueOf, rank);
    for (const [index, { stream }] of commands.entries()) at(queues, at(own, stream)).commands.push(index);
  }
  return { queues, queueOf };
}
