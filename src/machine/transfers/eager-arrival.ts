/**
 * Eager transfers: a member may go on before the others have come, as far as its own result allows. At its arrival a coin says whether its
 * data is saved and its rank let go; what others need of it is later read from what was saved. Where the coin says no, the member
 * stays until all have come, and its data is read as late as that. So a race that only an asynchronous library would show can show
 * itself, while a program without races gives the same bits. One thread only.
 */
import { dependsOn } from "../../commands/collectives.ts";
import { at } from "../../support/invariant.ts";
import { performMoves } from "./arrival.ts";
import { credit, type Eager, type Execution, hasArrived, isComplete, meet } from "../execution.ts";
import { movesTo } from "./moves.ts";
import type { CollectiveTable, GroupTable, Member } from "./transfer-tables.ts";

export function arriveEagerly<Saved>(execution: Execution<Saved>, eager: Eager<Saved>, member: Member): void {
  const table = at(execution.tables.transfers, member.transfer);
  if (table.kind === "collective") arriveAtCollective(execution, eager, table, member.position);
  else arriveAtGroup(execution, eager, table, member.position);
}

function arriveAtCollective<Saved>(
  execution: Execution<Saved>,
  eager: Eager<Saved>,
  table: CollectiveTable,
  position: number,
): void {
  const { operations, firstMember, meeting } = table;
  if (eager.coin()) {
    eager.released.add(firstMember + position);
    saveInput(execution, eager, table, position);
  }
  const all = meet(execution, meeting, 1, operations.length);
  const pending = [...operations.keys()].filter(
    (p) => !isComplete(execution, firstMember + p) && (all || mayComplete(execution, eager, table, p)),
  );
  // Results overwrite inputs where a collective runs in place, so what is still read live is saved first.
  if (all) for (const p of pending) saveInput(execution, eager, table, p);
  for (const p of pending) {
    performMoves(execution, movesTo(operations, p), (source) => eager.inputs.get(firstMember + source) ?? null);
    credit(execution, firstMember + p);
  }
  if (!all) return;
  for (const p of operations.keys()) {
    eager.inputs.delete(firstMember + p);
    eager.released.delete(firstMember + p);
  }
}

/** Whether a member was let go and all whose data its result needs have come. */
function mayComplete<Saved>(
  execution: Execution<Saved>,
  { released }: Eager<Saved>,
  { operations, firstMember }: CollectiveTable,
  position: number,
): boolean {
  if (!released.has(firstMember + position)) return false;
  const { type, root } = at(operations, position);
  return dependsOn(type, operations.length, root, position).every((other) =>
    hasArrived(execution, firstMember + other),
  );
}

function saveInput<Saved>(
  { compute }: Execution<Saved>,
  { inputs }: Eager<Saved>,
  { operations, firstMember }: CollectiveTable,
  position: number,
): void {
  const { input } = at(operations, position);
  const member = firstMember + position;
  if (input !== null && !inputs.has(member)) inputs.set(member, compute.save(input));
}

function arriveAtGroup<Saved>(
  execution: Execution<Saved>,
  { coin, sends }: Eager<Saved>,
  table: GroupTable,
  position: number,
): void {
  const letGo = coin();
  for (const index of at(table.edgesOf, position)) {
    const { from, sendOp, to, meeting, phases } = at(table.edges, index);
    if (meet(execution, meeting, from === to ? 2 : 1, 2)) {
      const saved = sends.get(meeting) ?? null;
      for (const { chains } of phases) performMoves(execution, chains.flat(), () => saved);
      // A sender whose data was saved has had its credit.
      if (!sends.delete(meeting)) credit(execution, table.firstMember + from);
      credit(execution, table.firstMember + to);
    } else if (letGo && from === position) {
      sends.set(meeting, execution.compute.save(at(at(table.operations, from).ops, sendOp).view));
      credit(execution, table.firstMember + from);
    }
  }
}
