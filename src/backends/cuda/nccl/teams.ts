/**
 * The communicators that a Program needs. One for collectives has the ranks of its team, in team order; one for sends
 * and receives has all ranks that use it.
 */
import type { Program } from "../../../commands/program.ts";
import { invariant } from "../../../support/invariant.ts";

export interface Team {
  /** The commands' name of the communicator. */
  readonly name: string;
  readonly ranks: readonly number[];
}

/** In order of their names, so that every rank opens them in the same order. */
export function teamsOf({ transfers }: Program): readonly Team[] {
  const ordered = new Map<string, readonly number[]>();
  const users = new Map<string, Set<number>>();
  for (const { communicator, participants } of transfers) {
    const ranks = users.get(communicator) ?? new Set<number>();
    users.set(communicator, ranks);
    for (const { rank, operation } of participants) {
      ranks.add(rank);
      if (operation.kind === "collective") ordered.set(communicator, operation.team);
    }
  }
  return [...users.keys()].toSorted().map((name) => {
    const used = [...(users.get(name) ?? [])].toSorted((a, b) => a - b);
    const ranks = ordered.get(name) ?? used;
    invariant(
      used.every((rank) => ranks.includes(rank)),
      "a communicator has one team",
      { name, ranks, used },
    );
    return { name, ranks };
  });
}
