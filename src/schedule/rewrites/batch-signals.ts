/**
 * Collects signals into two barriers of all ranks, at the beginning and at the end of a run, if that costs only waiting
 * time. The waits for ready peers come together before the first copy. The signals that peers' memory has been read
 * come together after the last copy. Both sides of a barrier are on the copy stream: consecutive signals and waits on
 * one stream are one call, and one node of a graph.
 *
 *     wait 1, copy 1, signal 1, wait 2, copy 2, signal 2     ->     wait 1, wait 2, copy 1, copy 2, signal 1, signal 2
 *
 * It applies to waits for signals that ranks send without waiting first, so no cycle of waits can arise, and to signals
 * that only the end of a run waits for. Signals around a kernel in peers' memory belong to the kernel and stay.
 */
import { type CommandStreamId, isSignalling, type SlotId } from "../../commands/command.ts";
import { at } from "../../support/invariant.ts";
import { type DraftDependences, dependentsOf } from "../draft/order/known-dependences.ts";
import type { Draft, DraftNode } from "../draft/draft.ts";
import type { EditContext } from "../draft/edit-ranks.ts";
import { inBarriers } from "../draft/order/order-nodes.ts";
import { draftRewrite, type Rewrite } from "../rewrite.ts";

export const batchSignals: Rewrite<true> = draftRewrite(() => {
  let finals: ReadonlySet<SlotId> | null = null;
  return (draft, context) => {
    // The same for all ranks, so computed for the first only.
    finals ??= finalSlots(context);
    return moveToCopyStream(batchLast(batchWaits(draft, context), finals, context), context);
  };
});

/**
 * On every stream, moves waits for signals that are sent at once before the first command that depends on one of them.
 * The commands that depended on one then depend on all.
 */
function batchWaits(draft: Draft, { memory, dependences }: EditContext): Draft {
  const { before } = dependences.of(draft.nodes);
  const after = dependentsOf(before);
  const inBarrier = inBarriers(draft, memory);
  return onEachStream(draft, (left, stream) => {
    const waits = draft.nodes.flatMap(({ command, guarantee }, position) => {
      const isEarly = guarantee !== null && guarantee.senders.size === 1 && at(before, position).length === 0;
      const isOwn = command.kind === "waitSignal" && command.stream === stream && !at(inBarrier, position);
      return isOwn && isEarly ? [position] : [];
    });
    const needing = nodesAfter(waits, after, draft.nodes.length);
    if (waits.length < 2 || needing.size === 0) return left;
    const batch = waits.map((position) => at(draft.nodes, position));
    const gathered = gather(left, batch, at(draft.nodes, Math.min(...needing)).id, (first) => [...batch, first]);
    const ids = new Set([...needing].map((position) => at(draft.nodes, position).id));
    return {
      ...gathered,
      nodes: gathered.nodes.map((node) => (ids.has(node.id) ? withSync(node, batch) : node)),
    };
  });
}

/** The nodes that depend on one of these, directly or by a join. */
function nodesAfter(
  positions: readonly number[],
  after: readonly (readonly number[])[],
  nodes: number,
): ReadonlySet<number> {
  const found = new Set(positions.flatMap((position) => at(after, position)));
  for (const vertex of found) if (vertex >= nodes) for (const other of at(after, vertex)) found.add(other);
  return new Set([...found].filter((vertex) => vertex < nodes));
}

/**
 * On every stream, moves signals that only the end of a run waits for after the last command that one of them reports.
 */
function batchLast(draft: Draft, finals: ReadonlySet<SlotId>, { memory, dependences }: EditContext): Draft {
  const { before, lastOf } = dependences.of(draft.nodes);
  const inBarrier = inBarriers(draft, memory);
  return onEachStream(draft, (left, stream) => {
    const signals = draft.nodes.flatMap(({ command }, position) => {
      const isLast = command.kind === "signal" && command.stream === stream && finals.has(command.slot);
      return isLast && !at(inBarrier, position) && at(before, position).length > 0 ? [position] : [];
    });
    const last = Math.max(...signals.flatMap((position) => at(before, position).map(lastOf)));
    const anchor = draft.nodes[last];
    if (signals.length < 2 || anchor?.command.stream !== stream) return left;
    const batch = signals.map((position) => withSync(at(draft.nodes, position), [anchor]));
    return gather(left, batch, anchor.id, (node) => [node, ...batch]);
  });
}

/** The slots whose waits unblock only frees, at the end of a run. */
function finalSlots({
  program,
  representatives,
  representativeOf,
  draftOf,
  dependences,
}: EditContext): ReadonlySet<SlotId> {
  const [finals, others] = [new Set<SlotId>(), new Set<SlotId>()];
  const waits = new Map(
    representatives.map((rank) => {
      const { nodes } = draftOf(rank);
      const isLast = letsNothingGoOn(nodes, dependences.of(nodes));
      const own = nodes.flatMap(({ command, sources }, position) =>
        command.kind === "waitSignal" ? [{ source: at(sources, 0), isLast: isLast(position) }] : [],
      );
      return [rank, own] as const;
    }),
  );
  for (const { rank, commands } of program.ranks) {
    for (const { source, isLast } of waits.get(representativeOf(rank)) ?? []) {
      const command = at(commands, source);
      if (command.kind === "waitSignal") (isLast ? finals : others).add(command.slot);
    }
  }
  return new Set([...finals].filter((slot) => !others.has(slot)));
}

/** By position: whether nothing depends on the node except frees that nothing depends on. */
function letsNothingGoOn(
  nodes: readonly DraftNode[],
  { before, sequence }: DraftDependences,
): (position: number) => boolean {
  const after = dependentsOf(before);
  const ends = marksAlone(nodes, sequence.toReversed(), after, "free");
  return (position) => at(after, position).every((other) => ends.has(other));
}

/** Allocs or frees without neighbours, and joins that have only such neighbours. */
function marksAlone(
  nodes: readonly DraftNode[],
  sequence: readonly number[],
  neighbours: readonly (readonly number[])[],
  kind: "alloc" | "free",
): ReadonlySet<number> {
  const found = new Set<number>();
  for (const vertex of sequence) {
    const node = nodes[vertex];
    const others = at(neighbours, vertex);
    const isAlone =
      node === undefined
        ? others.every((other) => found.has(other))
        : node.command.kind === kind && others.length === 0;
    if (isAlone) found.add(vertex);
  }
  return found;
}

/**
 * Moves signals that are sent at once to the copy stream if it begins with waits. Moves waits that unblock nothing
 * there if it ends with this rank's last signals. The copy stream begins with the run, and a wait after the last signal
 * delays nothing.
 */
function moveToCopyStream(draft: Draft, { memory, dependences: known }: EditContext): Draft {
  const { nodes, streams } = draft;
  const copies = streams.find(({ role }) => role === "copy")?.id;
  const isOnCopyStream = ({ command }: DraftNode): boolean => command.stream === copies;
  const first = nodes.findIndex(isOnCopyStream);
  const last = nodes[nodes.findLastIndex(({ command }) => isSignalling(command))];
  if (copies === undefined || first === -1 || last === undefined) return draft;
  const inBarrier = inBarriers(draft, memory);
  const dependences = known.of(nodes);
  const { before, sequence } = dependences;
  // Memory that an alloc marks as usable from the start of the run is ready then.
  const starts = marksAlone(nodes, sequence, before, "alloc");
  const begins = at(nodes, first).command.kind === "waitSignal" && !at(inBarrier, first);
  const ends = isOnCopyStream(last) && !at(inBarrier, nodes.indexOf(last));
  const isLast = letsNothingGoOn(nodes, dependences);
  const moving = nodes.filter((node, position) => {
    if (isOnCopyStream(node) || at(inBarrier, position)) return false;
    if (node.command.kind === "signal") return begins && at(before, position).every((other) => starts.has(other));
    return node.command.kind === "waitSignal" && ends && isLast(position);
  });
  if (moving.length === 0) return draft;
  const ids = new Set(moving.map(({ id }) => id));
  const placed = nodes.map((node) => (ids.has(node.id) ? onStream(node, copies) : node));
  const waits = placed.filter(({ id, command }) => ids.has(id) && command.kind === "waitSignal");
  const moved = waits.map((node) => withSync(node, [last]));
  return gather({ ...draft, nodes: placed }, moved, last.id, (node) => [node, ...moved]);
}

function onStream(node: DraftNode, stream: CommandStreamId): DraftNode {
  return { ...node, command: { ...node.command, stream } };
}

function onEachStream(draft: Draft, batch: (draft: Draft, stream: CommandStreamId) => Draft): Draft {
  return draft.streams.reduce((left, { id }) => batch(left, id), draft);
}

/** Removes the nodes of `batch` from their positions, and replaces the node `anchor` by a group that contains them. */
function gather(
  draft: Draft,
  batch: readonly DraftNode[],
  anchor: number,
  holding: (anchor: DraftNode) => readonly DraftNode[],
): Draft {
  const moving = new Set(batch.map(({ id }) => id));
  const nodes = draft.nodes.flatMap((node) => (node.id === anchor ? holding(node) : moving.has(node.id) ? [] : [node]));
  return { ...draft, nodes };
}

function withSync(node: DraftNode, others: readonly DraftNode[]): DraftNode {
  return { ...node, sync: [...new Set([...node.sync, ...others.map(({ id }) => id)])] };
}
