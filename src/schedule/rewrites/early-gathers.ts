/**
 * Issues the communication that waits for no kernel, on any rank, before everything else. In a loop that gathers and
 * scatters, the gathers of later chunks then run during the first GEMMs instead of queueing after scatters.
 *
 *     gather 1, GEMM 1, scatter 1, gather 2, GEMM 2, scatter 2
 *     ->  gather 1, gather 2, GEMM 1, scatter 1, GEMM 2, scatter 2
 *
 * A rank without other communication stays as it is, because its gathers queue after nothing.
 *
 * The result completes on one queue if the draft did: the early nodes depend only on early nodes of all ranks. They
 * complete in their old order without the others, which then complete in theirs. Transfers are early on all ranks or on
 * none, so communicators see one order.
 */
import { type CommandStreamId, isBlocking, isSignalling, type SlotId } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { makeId, at, pushTo } from "../../support/invariant.ts";
import { draftDependences, dependentsOf } from "../draft/order/known-dependences.ts";
import type { Draft, DraftNode } from "../draft/draft.ts";
import type { EditContext } from "../draft/edit-ranks.ts";
import { inBarriers } from "../draft/order/order-nodes.ts";
import { type Past, pastMapper } from "../draft/order/pasts.ts";
import { draftRewrite, type Rewrite } from "../rewrite.ts";

export const earlyGathers: Rewrite<true> = draftRewrite(() => {
  let early: ReadonlyMap<number, ReadonlySet<number>> | null = null;
  return (draft, context) => {
    early ??= earlyNodes(context);
    return movedFirst(draft, early.get(context.representativeOf(draft.rank)) ?? new Set(), context);
  };
});

/** A node of a representative's draft, and those at its position in the drafts of its class. */
interface Place {
  readonly rank: number;
  readonly position: number;
}

/** By representative: the positions of nodes that need no kernel of any rank. */
function earlyNodes(context: EditContext): ReadonlyMap<number, ReadonlySet<number>> {
  const { representatives, draftOf, memory } = context;
  const ofEach = <T>(make: (draft: Draft) => T): ReadonlyMap<number, T> =>
    new Map(representatives.map((rank) => [rank, make(draftOf(rank))]));
  const after = ofEach(({ nodes }) => dependentsOf(draftDependences(withoutTransferOrder(nodes), memory).before));
  const waiting = waitingOf(context);
  const late = ofEach((draft) => {
    const inBarrier = inBarriers(draft, memory);
    return new Set(draft.nodes.flatMap(({ command }, i) => (command.kind === "launch" || at(inBarrier, i) ? i : [])));
  });
  const left = [...late].flatMap(([rank, own]) => Array.from(own, (position): Place => ({ rank, position })));
  for (let place = left.pop(); place !== undefined; place = left.pop()) {
    const { rank, position } = place;
    const own = (after.get(rank)?.[position] ?? []).map((other): Place => ({ rank, position: other }));
    for (const next of [...own, ...(waiting.get(rank)?.get(position) ?? [])]) {
      const ofRank = late.get(next.rank);
      if (ofRank === undefined || ofRank.has(next.position)) continue;
      ofRank.add(next.position);
      left.push(next);
    }
  }
  return ofEach(({ rank, nodes }) => new Set(nodes.flatMap((_, i) => (late.get(rank)?.has(i) === true ? [] : [i]))));
}

/** By representative and position: the nodes of all ranks that wait for a node. */
function waitingOf({
  program,
  representatives,
  representativeOf,
  draftOf,
}: EditContext): ReadonlyMap<number, ReadonlyMap<number, readonly Place[]>> {
  /** By representative: where its commands are among the nodes. */
  const places = new Map(
    representatives.map((rank) => [
      rank,
      new Map(draftOf(rank).nodes.map(({ sources }, position) => [at(sources, 0), position])),
    ]),
  );
  const placeOf = (rank: number, command: number): Place => {
    const representative = representativeOf(rank);
    return { rank: representative, position: places.get(representative)?.get(command) ?? -1 };
  };
  const waits = new Map<SlotId, Place[]>();
  for (const { rank, commands } of program.ranks) {
    for (const [position, command] of commands.entries()) {
      if (command.kind !== "waitSignal") continue;
      pushTo(waits, command.slot, placeOf(rank, position));
    }
  }
  return new Map(
    representatives.map((rank) => {
      const waiting = new Map<number, readonly Place[]>();
      const signals = new Map<SlotId, number>();
      for (const [position, { command, transfer }] of draftOf(rank).nodes.entries()) {
        if (transfer !== null) {
          const { participants } = at(program.transfers, transfer);
          waiting.set(
            position,
            participants.map((participant) => placeOf(participant.rank, participant.command)),
          );
        }
        if (command.kind !== "signal") continue;
        const n = signals.get(command.slot) ?? 0;
        signals.set(command.slot, n + 1);
        const wait = waits.get(command.slot)?.[n];
        if (wait !== undefined) waiting.set(position, [wait]);
      }
      return [rank, waiting];
    }),
  );
}

/** Moves early nodes that communicate to the front, with those that they need. Local copies stay near their GEMMs. */
function movedFirst(draft: Draft, early: ReadonlySet<number>, { memory }: EditContext): Draft {
  const { nodes, rank } = draft;
  const { before, sequence } = draftDependences(withoutTransferOrder(nodes), memory);
  const moved = new Set<number>();
  for (const vertex of sequence.toReversed()) {
    const node = nodes[vertex];
    if (node !== undefined) {
      if (!early.has(vertex) || !(moved.has(vertex) || communicates(node, rank, memory))) continue;
      moved.add(vertex);
    } else if (!moved.has(vertex)) continue;
    for (const other of at(before, vertex)) moved.add(other);
  }
  const first = nodes.filter((_, position) => moved.has(position));
  const last = nodes.filter((_, position) => !moved.has(position));
  const isFirst = first.every(({ id }, i) => id === at(nodes, i).id);
  if (isFirst || !last.some((node) => communicates(node, rank, memory))) return draft;
  return onCopyStream({ ...draft, nodes: withTransferOrder(first, last) }, first.length);
}

/**
 * Puts the first `count` nodes, except the library's, on a copy stream. On worker streams, waits for what peers have
 * read would follow GEMMs and so order all chunks.
 */
function onCopyStream(draft: Draft, count: number): Draft {
  const libraries = new Set(
    draft.streams.flatMap(({ id, role }) => (role === "caller" || role === "worker" ? [] : id)),
  );
  const copies = makeId<CommandStreamId>(draft.streams.length);
  return {
    ...draft,
    streams: [...draft.streams, { id: copies, role: "copy", name: "copy stream" }],
    nodes: draft.nodes.map((node, i) => {
      const { command } = node;
      const moves = i < count && command.kind !== "alloc" && !libraries.has(command.stream);
      return moves ? { ...node, command: { ...command, stream: copies } } : node;
    }),
  };
}

function communicates({ command }: DraftNode, rank: number, { buffers }: Pick<Program, "buffers">): boolean {
  if (isBlocking(command) || isSignalling(command)) return true;
  if (command.kind !== "copy") return false;
  return [command.source, command.destination].some(({ buffer }) => at(buffers, buffer).rank !== rank);
}

/** Nodes without the order of transfers, which is the only one that the rewrite changes. */
function withoutTransferOrder(nodes: readonly DraftNode[]): readonly DraftNode[] {
  const transfers = idsOfTransfers(nodes);
  const without = withoutIds(transfers);
  return nodes.map((node) => (transfers.has(node.id) ? without(node) : node));
}

function withoutIds(ids: ReadonlySet<number>): (node: DraftNode) => DraftNode {
  const kept = (all: readonly number[]): readonly number[] =>
    all.some((id) => ids.has(id)) ? all.filter((id) => !ids.has(id)) : all;
  const keptPast = pastMapper(kept);
  return (node) => ({
    ...node,
    sync: kept(node.sync),
    pasts: node.pasts.flatMap((past) => keptPast(past) ?? []),
  });
}

/**
 * Both parts in a row. Where an early transfer was ordered after a later one, the order is reversed: the later one comes
 * after the last such transfer of each stream, and so after all of them.
 */
function withTransferOrder(first: readonly DraftNode[], last: readonly DraftNode[]): readonly DraftNode[] {
  const passed = idsOfTransfers(last);
  const lastOnStream = new Map<CommandStreamId, DraftNode>();
  for (const node of first) if (node.command.kind === "transfer") lastOnStream.set(node.command.stream, node);
  const after = new Map<number, number[]>();
  for (const { id, pasts } of lastOnStream.values()) {
    const others = new Set(pasts.flatMap((past) => idsIn(past).filter((other) => passed.has(other))));
    for (const other of others) after.set(other, [...(after.get(other) ?? []), id]);
  }
  const without = withoutIds(passed);
  const later = last.map((node) => ({ ...node, sync: [...node.sync, ...(after.get(node.id) ?? [])] }));
  return [...first.map(without), ...later];
}

function idsIn(past: Past): readonly number[] {
  const ids: number[] = [];
  for (let each: Past | null = past; each !== null; each = each.base) ids.push(...each.items);
  return ids;
}

function idsOfTransfers(nodes: readonly DraftNode[]): ReadonlySet<number> {
  return new Set(nodes.flatMap(({ id, command }) => (command.kind === "transfer" ? [id] : [])));
}
