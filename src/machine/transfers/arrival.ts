/**
 * Synchronous transfers: what happens when a member arrives. Whoever completes a meeting moves the data and credits those who took
 * part: in a collective nobody goes on before all have come, in a group a member needs its direct partners only.
 */
import { at } from "../../support/invariant.ts";
import { credit, type Execution, meet } from "../execution.ts";
import type { Move, Phase } from "./moves.ts";
import type { CollectiveTable, GroupTable, Member } from "./transfer-tables.ts";

export function arrive<Saved>(execution: Execution<Saved>, member: Member): void {
  const table = at(execution.tables.transfers, member.transfer);
  if (table.kind === "collective") arriveAtCollective(execution, table);
  else arriveAtGroup(execution, table, member.position);
}

function arriveAtCollective<Saved>(execution: Execution<Saved>, table: CollectiveTable): void {
  const { operations, firstMember, meeting, phases } = table;
  if (!meet(execution, meeting, 1, operations.length)) return;
  performPhases(execution, phases);
  for (const position of operations.keys()) credit(execution, firstMember + position);
}

function arriveAtGroup<Saved>(execution: Execution<Saved>, table: GroupTable, position: number): void {
  for (const index of at(table.edgesOf, position)) {
    const { from, to, meeting, phases } = at(table.edges, index);
    if (!meet(execution, meeting, from === to ? 2 : 1, 2)) continue;
    performPhases(execution, phases);
    credit(execution, table.firstMember + from);
    credit(execution, table.firstMember + to);
  }
}

function performPhases<Saved>(execution: Execution<Saved>, phases: readonly Phase[]): void {
  for (const phase of phases) {
    if (execution.sharing?.phase(phase) ?? false) continue;
    for (const chain of phase.chains) performMoves(execution, chain, () => null);
  }
}

/** `savedOf` gives what was saved of the data of the member at a position, or null where it is read live. */
export function performMoves<Saved>(
  { compute }: Pick<Execution<Saved>, "compute">,
  moves: readonly Move[],
  savedOf: (position: number) => Saved | null,
): void {
  for (const { op, sources, destination } of moves) {
    const read = sources.map(({ member, view }) => ({ view, saved: savedOf(member) }));
    if (op === null) compute.copy(at(read, 0), destination);
    else compute.combine(op, read, destination);
  }
}
