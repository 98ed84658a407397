/** Matches and numbers the transfers of all lists: collectives and point-to-point groups. */
import type { Diagnostic } from "../../../diagnostics/diagnostic.ts";
import { makeId } from "../../../support/ids.ts";
import { at } from "../../../support/invariant.ts";
import type { TransferId } from "../../command.ts";
import type { LinkedTransfer, Participant } from "../../program.ts";
import type { Collective, PointToPointGroup } from "../../transfer.ts";
import type { CommandList, UnlinkedCommand } from "../../command-list.ts";
import { matchCollectives, type Posted } from "./collectives.ts";
import { matchGroups } from "./groups.ts";
import type { Meanings } from "./meaning.ts";
import { relocateCollective, relocateGroup } from "../relocate.ts";

export type TransferOperation = Collective | PointToPointGroup;

export interface MatchedTransfers {
  /** Indexed by TransferId; in order of each one's first command, by rank and position. */
  readonly transfers: readonly LinkedTransfer[];
  /** transferOf[rank][command]. */
  readonly transferOf: readonly (readonly (TransferId | null)[])[];
  /** By rank: what each of its transfer commands does, with its buffers numbered over all ranks. */
  readonly operations: readonly ReadonlyMap<UnlinkedCommand, TransferOperation>[];
  readonly problems: readonly Diagnostic[];
  readonly warnings: readonly Diagnostic[];
}

/** `bufferBases[rank]` is the id of the rank's buffer 0. */
export function matchTransfers(meanings: Meanings, bufferBases: readonly number[]): MatchedTransfers {
  const { lists } = meanings;
  const collectives: Posted<Collective>[] = [];
  const groups: Posted<PointToPointGroup>[] = [];
  const operations = lists.map(() => new Map<UnlinkedCommand, TransferOperation>());
  for (const [rank, { commands }] of lists.entries()) {
    for (const [index, command] of commands.entries()) {
      if (command.kind !== "transfer") continue;
      const { communicator, operation } = command;
      const posted = { rank, command: index, communicator };
      const base = at(bufferBases, rank);
      const relocated =
        operation.kind === "group" ? relocateGroup(base, operation) : relocateCollective(base, operation);
      if (relocated.kind === "group") groups.push({ ...posted, operation: relocated });
      else collectives.push({ ...posted, operation: relocated });
      at(operations, rank).set(command, relocated);
    }
  }
  const matchedCollectives = matchCollectives(meanings, collectives);
  const matchedGroups = matchGroups(meanings, groups);
  const unnumbered = [
    ...matchedCollectives.matched.map((match) => ({ ...match, kind: "collective" as const })),
    ...matchedGroups.matched.map((match) => ({ ...match, kind: "group" as const })),
  ].sort((a, b) => compare(earliest(a.participants), earliest(b.participants)));
  const transferOf = emptyRows(lists, new Set([...collectives, ...groups].map(({ rank }) => rank)));
  const transfers = unnumbered.map((match, index): LinkedTransfer => {
    const id = makeId<TransferId>(index);
    const participants = match.participants.map(({ rank, command, operation }) => ({ rank, command, operation }));
    for (const { rank, command } of participants) at(transferOf, rank)[command] = id;
    return { ...match, id, participants };
  });
  return {
    transfers,
    transferOf,
    operations,
    problems: [...matchedCollectives.problems, ...matchedGroups.problems],
    warnings: [...matchedCollectives.warnings, ...matchedGroups.warnings],
  };
}

/** A row of nulls for each list. Lists without transfers, and of one length, share one. */
function emptyRows(
  lists: readonly CommandList[],
  withTransfers: ReadonlySet<number>,
): readonly (TransferId | null)[][] {
  const shared = new Map<number, (TransferId | null)[]>();
  return lists.map(({ commands }, rank) => {
    const known = shared.get(commands.length);
    if (known !== undefined && !withTransfers.has(rank)) return known;
    const row = commands.map(() => null);
    if (!withTransfers.has(rank)) shared.set(commands.length, row);
    return row;
  });
}

function earliest(participants: readonly Participant[]): Participant {
  return participants.reduce((first, each) => (compare(each, first) < 0 ? each : first));
}

function compare(a: Participant, b: Participant): number {
  return a.rank - b.rank || a.command - b.command;
}
