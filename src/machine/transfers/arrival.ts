/**
 * Synchronous transfers: the effect of a participant's arrival. The participant that completes a rendezvous moves the
 * data and gives credits to those involved. In a collective nobody continues before all have arrived; in a group a
 * participant waits only for its direct peers.
 */
import { at } from "../../support/invariant.ts";
import { countArrivals, credit, type Execution } from "../execution.ts";
import type { Move, MovePhase } from "./moves.ts";
import type { CollectiveTable, GroupTable, NumberedParticipant } from "./transfer-tables.ts";

export function arrive<Saved>(execution: Execution<Saved>, participant: NumberedParticipant): void {
  const table = at(execution.tables.transfers, participant.transfer);
  if (table.kind === "collective") arriveAtCollective(execution, table);
  else arriveAtGroup(execution, table, participant.position);
}

function arriveAtCollective<Saved>(execution: Execution<Saved>, table: CollectiveTable): void {
  const { operations, firstParticipant, rendezvous, phases } = table;
  if (!countArrivals(execution, rendezvous, 1, operations.length)) return;
  performPhases(execution, phases);
  for (const position of operations.keys()) credit(execution, firstParticipant + position);
}

function arriveAtGroup<Saved>(execution: Execution<Saved>, table: GroupTable, position: number): void {
  for (const index of at(table.edgesOf, position)) {
    const { from, to, rendezvous, phases } = at(table.edges, index);
    if (!countArrivals(execution, rendezvous, from === to ? 2 : 1, 2)) continue;
    performPhases(execution, phases);
    credit(execution, table.firstParticipant + from);
    credit(execution, table.firstParticipant + to);
  }
}

function performPhases<Saved>(execution: Execution<Saved>, phases: readonly MovePhase[]): void {
  for (const phase of phases) {
    if (execution.sharing?.phase(phase) ?? false) continue;
    for (const chain of phase.chains) performMoves(execution, chain, () => null);
  }
}

/** `savedOf` returns the saved data of the participant at a position, or null if its data is read live. */
export function performMoves<Saved>(
  { compute }: Pick<Execution<Saved>, "compute">,
  moves: readonly Move[],
  savedOf: (position: number) => Saved | null,
): void {
  for (const { op, sources, destination } of moves) {
    const read = sources.map(({ from, view }) => ({ view, saved: savedOf(from) }));
    if (op === null) compute.copy(at(read, 0), destination);
    else compute.combine(op, read, destination);
  }
}
