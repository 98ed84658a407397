/**
 * The operational semantics of a Program: the next step of a queue, given what has completed. Every back end that runs
 * streams itself calls this. docs/commands.md defines the same rules in words.
 */
import type { Command } from "../commands/command.ts";
import { at, invariant, unreachable } from "../support/invariant.ts";
import { arrive, performMoves } from "./transfers/arrival.ts";
import {
  type Execution,
  hasArrived,
  isComplete,
  type RunProgress,
  runNumber,
  type Synchronisation,
  countArrivals,
  credit,
  type Eager,
} from "./execution.ts";
import { slotOverrun } from "./obstacle.ts";
import { commandAt, eventNumber, participantNumber } from "./tables.ts";
import { dependsOn } from "../commands/collectives.ts";
import { movesTo } from "./transfers/moves.ts";
import type { CollectiveTable, GroupTable, NumberedParticipant } from "./transfers/transfer-tables.ts";

/**
 * end: the queue has completed all its commands. blocked: its next command waits for other queues (see `obstacleOf`).
 * progress: it ran its next command; for a transfer, its rank arrived, and a later step completes it.
 */
export type StepResult = "end" | "blocked" | "progress";

/**
 * Takes the next step of `queue`. Two threads must not call it for one queue at the same time. Throws `slot-overrun`,
 * and errors of the back end; the state must then be reset.
 */
export function step<Saved>(execution: Execution<Saved>, queue: number): StepResult {
  const result = stepSynchronisation(execution, queue);
  return result === "data" ? stepData(execution, queue) : result;
}

/**
 * As `step`, for a thread that has no time to move data: "data" if the next command is a launch, a copy or a transfer,
 * and nothing has changed.
 */
export function stepSynchronisation(synchronisation: Synchronisation, queue: number): StepResult | "data" {
  const { tables, observer } = synchronisation;
  const index = nextOf(synchronisation, queue);
  if (index === null) return "end";
  const { rank } = at(tables.queues, queue);
  const command = commandAt(tables, rank, index);
  if (movesData(command)) return "data";
  if (!mayRun(synchronisation, rank, command)) return "blocked";
  observer?.start(rank, index);
  synchronise(synchronisation, rank, index, command);
  finish(synchronisation, queue, index);
  return "progress";
}

/** The step of a queue whose next command moves data. */
function stepData<Saved>(execution: Execution<Saved>, queue: number): StepResult {
  const { tables, observer, compute, sharing } = execution;
  const { rank } = at(tables.queues, queue);
  const index = nextOf(execution, queue);
  invariant(index !== null, "a queue with data to move is not at its end", { queue });
  const command = commandAt(tables, rank, index);
  invariant(movesData(command), "the command moves data", command);
  if (command.kind === "transfer") {
    const participant = participantNumber(tables, rank, index);
    if (!hasArrived(execution, participant)) {
      startTransfer(execution, rank, index, participant);
      return "progress";
    }
    if (!isComplete(execution, participant)) return "blocked";
  } else {
    observer?.start(rank, index);
    if (sharing?.command(rank, index) !== true) {
      if (command.kind === "launch") compute.launch(rank, command);
      else compute.copy({ view: command.source, saved: null }, command.destination);
    }
  }
  finish(execution, queue, index);
  return "progress";
}

/** The position of the queue's next command in the rank's list; null at the end. */
function nextOf({ tables, state }: RunProgress, queue: number): number | null {
  return at(tables.queues, queue).commands[Atomics.load(state, tables.layout.cursors + queue)] ?? null;
}

/** Ends a queue's command, so that the queue may take the next one. */
function finish({ tables, state, observer }: Synchronisation, queue: number, index: number): void {
  observer?.end(at(tables.queues, queue).rank, index);
  Atomics.add(state, tables.layout.cursors + queue, 1);
}

type Data = Extract<Command, { readonly kind: "transfer" | "launch" | "copy" }>;
type Local = Exclude<Command, Data>;

function movesData(command: Command): command is Data {
  return command.kind === "transfer" || command.kind === "launch" || command.kind === "copy";
}

/** Whether the command's waits are satisfied. A wait for a signal takes the signal. */
function mayRun({ tables, state }: Synchronisation, rank: number, command: Local): boolean {
  switch (command.kind) {
    case "waitEvent":
      return Atomics.load(state, tables.layout.events + eventNumber(tables, rank, command.event)) === runNumber(state);
    case "waitSignal":
      return Atomics.compareExchange(state, tables.layout.slots + command.slot, 1, 0) === 1;
    case "recordEvent":
    case "signal":
    case "alloc":
    case "free":
      return true;
    default:
      return unreachable(command);
  }
}

function synchronise({ tables, state, wake }: Synchronisation, rank: number, index: number, command: Local): void {
  switch (command.kind) {
    case "recordEvent": {
      const event = eventNumber(tables, rank, command.event);
      Atomics.store(state, tables.layout.events + event, runNumber(state));
      for (const waiter of at(tables.eventWaiters, event)) wake(waiter);
      return;
    }
    case "signal":
      if (Atomics.compareExchange(state, tables.layout.slots + command.slot, 0, 1) !== 0) {
        slotOverrun(tables, rank, index, command);
      }
      for (const waiter of at(tables.slotWaiters, command.slot)) wake(waiter);
      return;
    case "waitEvent":
    case "waitSignal":
    case "alloc":
    case "free":
      return;
    default:
      unreachable(command);
  }
}

function startTransfer<Saved>(execution: Execution<Saved>, rank: number, index: number, participant: number): void {
  const { tables, state, eager, observer } = execution;
  observer?.start(rank, index);
  Atomics.store(state, tables.layout.arrivals + participant, runNumber(state));
  if (eager === null) arrive(execution, at(tables.participants, participant));
  else arriveEagerly(execution, eager, at(tables.participants, participant));
}

// Eager transfers: a participant may continue before its peers arrive, as soon as its own result allows. At its arrival
// a random bit decides whether its data is saved, so that its rank may continue; its peers later read the saved data.
// Otherwise the participant stays until all have arrived, and its data is read then. A race that only an asynchronous
// library would expose can thus show, while a program without races gives the same bits. One thread only.

function arriveEagerly<Saved>(
  execution: Execution<Saved>,
  eager: Eager<Saved>,
  participant: NumberedParticipant,
): void {
  const table = at(execution.tables.transfers, participant.transfer);
  if (table.kind === "collective") arriveAtCollective(execution, eager, table, participant.position);
  else arriveAtGroup(execution, eager, table, participant.position);
}

function arriveAtCollective<Saved>(
  execution: Execution<Saved>,
  eager: Eager<Saved>,
  table: CollectiveTable,
  position: number,
): void {
  const { operations, firstParticipant, rendezvous } = table;
  if (eager.coin()) {
    eager.released.add(firstParticipant + position);
    saveInput(execution, eager, table, position);
  }
  const all = countArrivals(execution, rendezvous, 1, operations.length);
  const pending = [...operations.keys()].filter(
    (p) => !isComplete(execution, firstParticipant + p) && (all || mayComplete(execution, eager, table, p)),
  );
  // In-place results overwrite inputs, so inputs that are still read live are saved first.
  if (all) for (const p of pending) saveInput(execution, eager, table, p);
  for (const p of pending) {
    performMoves(execution, movesTo(operations, p), (source) => eager.inputs.get(firstParticipant + source) ?? null);
    credit(execution, firstParticipant + p);
  }
  if (!all) return;
  for (const p of operations.keys()) {
    eager.inputs.delete(firstParticipant + p);
    eager.released.delete(firstParticipant + p);
  }
}

/** Whether a participant may continue early and all the data that its result needs has arrived. */
function mayComplete<Saved>(
  execution: Execution<Saved>,
  { released }: Eager<Saved>,
  { operations, firstParticipant }: CollectiveTable,
  position: number,
): boolean {
  if (!released.has(firstParticipant + position)) return false;
  const { type, root } = at(operations, position);
  return dependsOn(type, operations.length, root, position).every((other) =>
    hasArrived(execution, firstParticipant + other),
  );
}

function saveInput<Saved>(
  { compute }: Execution<Saved>,
  { inputs }: Eager<Saved>,
  { operations, firstParticipant }: CollectiveTable,
  position: number,
): void {
  const { input } = at(operations, position);
  const participant = firstParticipant + position;
  if (input !== null && !inputs.has(participant)) inputs.set(participant, compute.save(input));
}

function arriveAtGroup<Saved>(
  execution: Execution<Saved>,
  { coin, sends }: Eager<Saved>,
  table: GroupTable,
  position: number,
): void {
  const letGo = coin();
  for (const index of at(table.edgesOf, position)) {
    const { from, sendOp, to, rendezvous, phases } = at(table.edges, index);
    if (countArrivals(execution, rendezvous, from === to ? 2 : 1, 2)) {
      const saved = sends.get(rendezvous) ?? null;
      for (const { chains } of phases) performMoves(execution, chains.flat(), () => saved);
      // A sender whose data was saved already has its credit.
      if (!sends.delete(rendezvous)) credit(execution, table.firstParticipant + from);
      credit(execution, table.firstParticipant + to);
    } else if (letGo && from === position) {
      sends.set(rendezvous, execution.compute.save(at(at(table.operations, from).ops, sendOp).view));
      credit(execution, table.firstParticipant + from);
    }
  }
}
