/**
 * Replicas: equal groups of consecutive ranks, as with tensor parallelism on each host and a part of the batch for each
 * host. The lists of the first replica are those of any other, but for the numbers of its ranks and the names that
 * contain them. They exchange nothing with each other, but by a library's collectives without a root of the ranks in the
 * same place of some replicas, as sums of gradients. What is proven or predicted of one replica holds for all
 * (verify/classes/README.md).
 */
import type { CommandList, UnlinkedCommand } from "../../commands/command-list.ts";
import { sameOperation } from "../../commands/collectives.ts";
import type { Collective, Transfer } from "../../commands/command.ts";
import { sameNumbers, sameView, type View } from "../../commands/view.ts";
import { at } from "../../support/invariant.ts";
import type { Alike, RankView } from "./alike.ts";

interface Recorded {
  readonly alike: Alike;
  readonly list: Omit<CommandList, "rank">;
}

/** One rank of those that were recorded at once. */
interface RankOf extends Recorded {
  /** How far operands move on each of them. */
  readonly moves: readonly (readonly number[])[];
  readonly rank: number;
  /** Its number among those. */
  readonly k: number;
}

/**
 * The number of ranks of the smallest replicas that each lie on one host of so many devices, or of those with `least`
 * ranks: all, if there are none. `recorded` has all ranks.
 */
export function replicaSize(
  recorded: readonly Recorded[],
  { devicesPerHost, least }: { readonly devicesPerHost: number; readonly least: number },
): number {
  const rankOf = new Map<number, RankOf>();
  for (const each of recorded) {
    const moves = movesIn(each);
    for (const [k, rank] of each.alike.ranks.entries()) rankOf.set(rank, { ...each, moves, rank, k });
  }
  const count = rankOf.size;
  for (let size = least; size < count; size++) {
    if (count % size === 0 && devicesPerHost % size === 0 && areReplicas(rankOf, size)) return size;
  }
  return count;
}

/**
 * Whether each rank does what the one a replica before it does. What a rank exchanges with others that are as much
 * further on stays in its replica: otherwise the first or the last replica would exchange with ranks that do not exist.
 */
function areReplicas(rankOf: ReadonlyMap<number, RankOf>, size: number): boolean {
  return [...rankOf.values()].every((own) => {
    const before = rankOf.get(own.rank - size);
    return (own.rank < size || (before !== undefined && isMoved(before, own, size))) && meetsAlike(rankOf, own, size);
  });
}

function movesIn({ alike, list }: Recorded): readonly (readonly number[])[] {
  const views: readonly RankView[] = [
    ...[...alike.moving.values()].flatMap(({ inputs, outputs }) => [...inputs, ...outputs]),
    ...list.pairs.map(({ view }) => view),
  ];
  return [...new Set(views.flatMap(({ moves }) => (moves === undefined ? [] : [moves])))];
}

/** The list of a rank of the first replica, which is alone in its collectives with other replicas. */
export function withoutOthers(list: CommandList, size: number): CommandList {
  const alone = (command: UnlinkedCommand): UnlinkedCommand =>
    isMeeting(command) && isWider(command.operation, size)
      ? { ...command, operation: { ...command.operation, team: [list.rank], wholeTeam: command.operation.team } }
      : command;
  return { ...list, commands: list.commands.map(alone) };
}

interface Meeting extends Transfer {
  readonly operation: Collective;
}

/** Whether all ranks of a library's collective wait for all. */
function isMeeting(command: UnlinkedCommand): command is Meeting {
  return command.kind === "transfer" && command.operation.kind === "collective" && command.operation.root === null;
}

/** Whether ranks of other replicas of `size` ranks take part, seen from any. */
function isWider({ team }: Collective, size: number): boolean {
  const replica = Math.floor(at(team, 0) / size);
  return team.some((rank) => Math.floor(rank / size) !== replica);
}

/**
 * Whether the collectives with other replicas are of ranks in the same place of each, and every rank of one has the same
 * team there. No rank of a team then waits for another that waits elsewhere.
 */
function meetsAlike(rankOf: ReadonlyMap<number, RankOf>, own: RankOf, size: number): boolean {
  return [...own.alike.varying.keys()].every((index) => {
    const command = commandOn(own, index);
    if (!isMeeting(command) || !isWider(command.operation, size)) return true;
    const { team } = command.operation;
    const first = rankOf.get(Math.min(...team));
    const theirs = first?.list === own.list ? commandOn(first, index) : null;
    return (
      theirs !== null &&
      isMeeting(theirs) &&
      sameNumbers(team, theirs.operation.team) &&
      team.includes(own.rank) &&
      team.every((rank) => rank % size === own.rank % size)
    );
  });
}

/** But for operands that move. */
function commandOn({ alike, list, k }: RankOf, index: number): UnlinkedCommand {
  const command = at(list.commands, index);
  return alike.varying.get(index)?.(command, k) ?? command;
}

/** Whether the second rank does what the first does, with other ranks that are `by` further on. */
function isMoved(a: RankOf, b: RankOf, by: number): boolean {
  const { alike, list, moves } = a;
  const moved = (rank: number): number => rank + by;
  return (
    list === b.list &&
    moves.every((own) => own[a.k] === own[b.k]) &&
    alike.peers.every((peers) => at(peers, a.k) + by === peers[b.k]) &&
    alike.collectives.every((collectiveOn) =>
      sameOperation(collectiveOn(a.k).operation, collectiveOn(b.k).operation, sameView, moved),
    ) &&
    [...alike.varying.keys()].every((index) => {
      const [own, other] = [commandOn(a, index), commandOn(b, index)];
      if (isMeeting(own) && isWider(own.operation, by))
        return isMeeting(other) && sameViews(own.operation, other.operation);
      return own.kind === "transfer" && other.kind === "transfer"
        ? sameOperation(own.operation, other.operation, sameView, moved)
        : JSON.stringify(own) === JSON.stringify(other);
    })
  );
}

function sameViews(a: Collective, b: Collective): boolean {
  return a.reduceOp === b.reduceOp && sameSide(a.input, b.input) && sameSide(a.output, b.output);
}

function sameSide(a: View | null, b: View | null): boolean {
  return a === b || (a !== null && b !== null && sameView(a, b));
}
