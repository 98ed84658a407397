/**
 * Rotations along a mesh whose devices are in any order, read off the Program. A rank's partners are the others in the
 * order in which its list first signals them, sends to them or gathers with them. If the ranks are alike, going from
 * each rank to its n-th partner is a rotation of the mesh.
 */
import type { Command } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import type { Permutation } from "./rank-group.ts";

/** Further partners are sums of the first ones in all programs that lowering makes. */
const mostPartners = 4;

export function* meshRotations(program: Program): Generator<Permutation> {
  const partners = program.ranks.map(({ rank, commands }) => partnersOf(program, rank, commands));
  for (let number = 0; number < mostPartners; number++) {
    const to = partners.map((own) => own[number] ?? -1);
    if (new Set(to).size === to.length && !to.includes(-1)) yield Uint16Array.from(to);
  }
}

/** The first other ranks that the rank signals or sends to, or that follow it in the team of a collective. */
function partnersOf({ slots }: Program, rank: number, commands: readonly Command[]): readonly number[] {
  const found = new Set<number>();
  for (const command of commands) {
    if (command.kind === "signal") found.add(at(slots, command.slot).waiter);
    if (command.kind === "transfer") {
      const { operation } = command;
      if (operation.kind === "collective") {
        found.add(at(operation.team, (operation.team.indexOf(rank) + 1) % operation.team.length));
      } else for (const { type, peer } of operation.ops) if (type === "send") found.add(peer);
    }
    found.delete(rank);
    if (found.size === mostPartners) break;
  }
  return [...found];
}
