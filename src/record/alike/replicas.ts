/**
 * Replicas: equal groups of consecutive ranks that exchange nothing with each other, as with tensor parallelism on each
 * host and a part of the batch for each host. The lists of the first replica are those of any other, but for the numbers
 * of its ranks and the names that contain them. What is proven or predicted of one therefore holds for all.
 */
import type { CommandList, UnlinkedCommand } from "../../commands/command-list.ts";
import type { Collective, PointToPointGroup } from "../../commands/command.ts";
import { sameNumbers, type View } from "../../commands/view.ts";
import { at } from "../../support/invariant.ts";
import type { Alike, RankView } from "./alike.ts";

interface Recorded {
  readonly alike: Alike;
  readonly list: Omit<CommandList, "rank">;
}

/** One rank of those that were recorded at once. */
interface RankOf extends Recorded {
  readonly k: number;
}

/**
 * The number of ranks of each replica: all, if there is one. `recorded` has all ranks. A replica lies on one host of so
 * many devices.
 */
export function replicaSize(recorded: readonly Recorded[], devicesPerHost: number): number {
  const rankOf = new Map<number, RankOf>();
  for (const each of recorded) for (const [k, rank] of each.alike.ranks.entries()) rankOf.set(rank, { ...each, k });
  const count = rankOf.size;
  const size = firstGroup(rankOf);
  // Of ranks that lie further apart, the last replica would exchange with ranks beyond the last.
  if (size === count || count % size !== 0 || devicesPerHost % size !== 0) return count;
  for (const [rank, own] of rankOf) {
    const before = rankOf.get(rank - size);
    if (rank >= size && (before === undefined || !isMoved(before, own, size))) return count;
  }
  return size;
}

/** The number of ranks that exchange data with rank 0, directly or through others. */
function firstGroup(rankOf: ReadonlyMap<number, RankOf>): number {
  const group = new Set([0]);
  for (const rank of group) {
    const own = rankOf.get(rank);
    for (const other of own === undefined ? [] : partnersOf(own)) group.add(other);
  }
  return group.size;
}

function partnersOf(own: RankOf): readonly number[] {
  const { alike, list, k } = own;
  return [
    ...alike.peers.map((peers) => at(peers, k)),
    ...alike.collectives.flatMap((collectiveOn) => collectiveOn(k).operation.team),
    ...list.commands.flatMap((_, index) => {
      const command = commandOn(own, index);
      if (command.kind !== "transfer") return [];
      const { operation } = command;
      return operation.kind === "collective" ? operation.team : operation.ops.map(({ peer }) => peer);
    }),
  ];
}

/** But for operands that move. */
function commandOn({ alike, list, k }: RankOf, index: number): UnlinkedCommand {
  const command = at(list.commands, index);
  return alike.varying.get(index)?.(command, k) ?? command;
}

/** Whether the second rank does what the first does, with other ranks that are `by` further on. */
function isMoved(a: RankOf, b: RankOf, by: number): boolean {
  const { alike, list } = a;
  const moving: readonly RankView[] = [
    ...[...alike.moving.values()].flatMap(({ inputs, outputs }) => [...inputs, ...outputs]),
    ...list.pairs.map(({ view }) => view),
  ];
  return (
    list === b.list &&
    moving.every(({ moves }) => moves === undefined || moves[a.k] === moves[b.k]) &&
    alike.peers.every((peers) => at(peers, a.k) + by === peers[b.k]) &&
    alike.collectives.every((collectiveOn) =>
      isMovedOperation(collectiveOn(a.k).operation, collectiveOn(b.k).operation, by),
    ) &&
    [...alike.varying.keys()].every((index) => {
      const [own, other] = [commandOn(a, index), commandOn(b, index)];
      return own.kind === "transfer" && other.kind === "transfer"
        ? isMovedOperation(own.operation, other.operation, by)
        : JSON.stringify(own) === JSON.stringify(other);
    })
  );
}

type Operation = Collective | PointToPointGroup;

function isMovedOperation(own: Operation, other: Operation, by: number): boolean {
  if (own.kind === "group") {
    return (
      other.kind === "group" &&
      own.ops.length === other.ops.length &&
      own.ops.every(({ type, peer, view }, i) => {
        const image = at(other.ops, i);
        return image.type === type && image.peer === peer + by && sameView(view, image.view);
      })
    );
  }
  return (
    other.kind === "collective" &&
    own.type === other.type &&
    own.root === other.root &&
    own.reduceOp === other.reduceOp &&
    own.team.length === other.team.length &&
    own.team.every((rank, i) => rank + by === other.team[i]) &&
    sameView(own.input, other.input) &&
    sameView(own.output, other.output)
  );
}

function sameView(a: View | null, b: View | null): boolean {
  if (a === b) return true;
  if (a === null || b === null) return false;
  const isThere = a.buffer === b.buffer && a.offset === b.offset && a.dtype === b.dtype;
  return isThere && sameNumbers(a.shape, b.shape) && sameNumbers(a.strides, b.strides);
}
