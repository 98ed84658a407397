/** All transfers of a program: collectives and point-to-point groups, matched and numbered. */
import type { Diagnostic } from "../../../diagnostics/diagnostic.ts";
import { makeId } from "../../../support/ids.ts";
import type { TransferId } from "../../command.ts";
import type { CommandList } from "../../command-list.ts";
import type { LinkedTransfer, Participant } from "../../program.ts";
import type { Collective, PointToPointGroup } from "../../transfer.ts";
import { matchCollectives, type Posted } from "./collectives.ts";
import { matchGroups } from "./groups.ts";
import { relocateOperation } from "../relocate.ts";

export interface MatchedTransfers {
  /** Indexed by TransferId; in order of the first command, by rank and position, that takes part. */
  readonly transfers: readonly LinkedTransfer[];
  /** transferOf[rank][command]. */
  readonly transferOf: readonly (readonly (TransferId | null)[])[];
  readonly problems: readonly Diagnostic[];
}

/** `bufferBases[rank]` is the id of the rank's buffer 0. */
export function matchTransfers(lists: readonly CommandList[], bufferBases: readonly number[]): MatchedTransfers {
  const collectives: Posted<Collective>[] = [];
  const groups: Posted<PointToPointGroup>[] = [];
  for (const [rank, { commands }] of lists.entries()) {
    for (const [index, command] of commands.entries()) {
      if (command.kind !== "transfer") continue;
      const operation = relocateOperation(bufferBases[rank] ?? 0, command.operation);
      const posted = { rank, command: index, communicator: command.communicator };
      if (operation.kind === "group") groups.push({ ...posted, operation });
      else collectives.push({ ...posted, operation });
    }
  }
  const matchedCollectives = matchCollectives(lists, collectives);
  const matchedGroups = matchGroups(lists, groups);
  const unnumbered = [
    ...matchedCollectives.matched.map((match) => ({ ...match, kind: "collective" as const })),
    ...matchedGroups.matched.map((match) => ({ ...match, kind: "group" as const })),
  ].sort((a, b) => compare(earliest(a.members), earliest(b.members)));
  const transferOf = lists.map(({ commands }): (TransferId | null)[] => commands.map(() => null));
  const transfers = unnumbered.map((match, index): LinkedTransfer => {
    const id = makeId<TransferId>(index);
    const members = match.members.map(({ rank, command, operation }) => ({ rank, command, operation }));
    for (const { rank, command } of members) {
      const row = transferOf[rank];
      if (row !== undefined) row[command] = id;
    }
    return { ...match, id, participants: members };
  });
  return { transfers, transferOf, problems: [...matchedCollectives.problems, ...matchedGroups.problems] };
}

function earliest(members: readonly Participant[]): Participant | undefined {
  return members.reduce<Participant | undefined>(
    (first, member) => (first === undefined || compare(member, first) < 0 ? member : first),
    undefined,
  );
}

function compare(a: Participant | undefined, b: Participant | undefined): number {
  if (a === undefined || b === undefined) return 0;
  return a.rank - b.rank || a.command - b.command;
}
