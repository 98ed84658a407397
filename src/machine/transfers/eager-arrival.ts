/**
 * Eager transfers: a participant may continue before its peers arrive, as soon as its own result allows. At its arrival
 * a random bit decides whether its data is saved, so that its rank may continue; its peers later read the saved data.
 * Otherwise the participant stays until all have arrived, and its data is read then. A race that only an asynchronous
 * library would expose can thus show, while a program without races gives the same bits. One thread only.
 */
import { dependsOn } from "../../commands/collectives.ts";
import { at } from "../../support/invariant.ts";
import { performMoves } from "./arrival.ts";
import { countArrivals, credit, type Eager, type Execution, hasArrived, isComplete } from "../execution.ts";
import { movesTo } from "./moves.ts";
import type { CollectiveTable, GroupTable, NumberedParticipant } from "./transfer-tables.ts";

export function arriveEagerly<Saved>(
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
