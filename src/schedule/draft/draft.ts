/**
 * A Draft is one rank's list as rewrites see it: the commands in an order that is right on one queue, without events. What must come
 * before what follows from the order where commands touch the same memory, and is written down (`sync`) where it keeps other ranks
 * apart. Events are only how streams carry that out; `writeDraft` makes new ones.
 *
 *     recordEvent a, waitEvent b, copy, recordEvent c, waitEvent c, signal   ->   copy; signal (sync: the copy)
 */
import type { Command, Origin, StreamInfo, TransferId } from "../../commands/command.ts";
import type { Told } from "./told-by-signals.ts";

export type DraftCommand = Exclude<Command, { readonly kind: "recordEvent" | "waitEvent" }>;

export interface DraftNode {
  /** Of this rank's draft; kept by rewrites, new for new nodes. */
  readonly id: number;
  readonly command: DraftCommand;
  readonly origin: Origin;
  readonly transfer: TransferId | null;
  /** Positions in the list that was read: of the commands that this one stands for. */
  readonly sources: readonly number[];
  /** Of a wait for a signal: what that tells; null for anything, and for other commands. */
  readonly told: Told | null;
  /** Ids of nodes that complete before, for the sake of other ranks. */
  readonly sync: readonly number[];
}

export interface Draft {
  readonly rank: number;
  readonly streams: readonly StreamInfo[];
  readonly nodes: readonly DraftNode[];
}

/** The same nodes where those in `replaced` (by id) give way to others, which `sync` of all then names in their place. */
export function replaceNodes(
  nodes: readonly DraftNode[],
  replaced: ReadonlyMap<number, readonly DraftNode[]>,
): readonly DraftNode[] {
  return renameSync(
    nodes.flatMap((node) => replaced.get(node.id) ?? [node]),
    new Map([...replaced].map(([id, others]) => [id, others.map((other) => other.id)])),
  );
}

/** `sync` with ids replaced by others: by none where a node is gone. */
export function renameSync(
  nodes: readonly DraftNode[],
  ids: ReadonlyMap<number, readonly number[]>,
): readonly DraftNode[] {
  return nodes.map((node) => {
    if (!node.sync.some((id) => ids.has(id))) return node;
    const sync = new Set(node.sync.flatMap((id) => ids.get(id) ?? [id]));
    sync.delete(node.id);
    return { ...node, sync: [...sync] };
  });
}

/** An id that no node has; the ones after it are free as well. */
export function freshId(nodes: readonly DraftNode[]): number {
  return nodes.reduce((least, { id }) => Math.max(least, id + 1), 0);
}
