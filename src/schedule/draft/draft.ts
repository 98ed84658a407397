/**
 * A Draft is one rank's list in the form that rewrites edit: the commands without events, in an order that is correct
 * on one queue. The positions of commands that touch the same memory define their order. `sync` and `pasts` list the
 * orders that other ranks rely on. Events only implement these orders on streams, and `writeDraft` regenerates them.
 *
 *     recordEvent a, waitEvent b, copy, recordEvent c, waitEvent c, signal   ->   copy; signal (sync: the copy)
 */
import type { Command, Origin, StreamInfo, TransferId } from "../../commands/command.ts";
import { type Past, pastMapper } from "./order/pasts.ts";
import type { Guarantee } from "./order/signal-guarantees.ts";

export type DraftCommand = Exclude<Command, { readonly kind: "recordEvent" | "waitEvent" }>;

export interface DraftNode {
  /** Unique in this rank's draft. Rewrites keep ids, and new nodes get new ones. */
  readonly id: number;
  readonly command: DraftCommand;
  readonly origin: Origin;
  readonly transfer: TransferId | null;
  /** Positions, in the list that was read, of the commands that this node replaces. */
  readonly sources: readonly number[];
  /** What the awaited signal guarantees; null for "any access", and for commands other than waitSignal. */
  readonly guarantee: Guarantee | null;
  /** Ids of nodes that must complete before this one because other ranks rely on it. */
  readonly sync: readonly number[];
  /** The same for sets of nodes that many commands share. */
  readonly pasts: readonly Past[];
}

export interface Draft {
  readonly rank: number;
  readonly streams: readonly StreamInfo[];
  readonly nodes: readonly DraftNode[];
}

/** Replaces nodes by id. Every `sync` then names the new nodes. */
export function replaceNodes(
  nodes: readonly DraftNode[],
  replaced: ReadonlyMap<number, readonly DraftNode[]>,
): readonly DraftNode[] {
  return renameSync(
    nodes.flatMap((node) => replaced.get(node.id) ?? [node]),
    new Map([...replaced].map(([id, others]) => [id, others.map((other) => other.id)])),
  );
}

/** `sync` and `pasts` with ids replaced. A removed node has no replacement. */
function renameSync(nodes: readonly DraftNode[], ids: ReadonlyMap<number, readonly number[]>): readonly DraftNode[] {
  const renamed = (old: readonly number[]): readonly number[] =>
    old.some((id) => ids.has(id)) ? [...new Set(old.flatMap((id) => ids.get(id) ?? [id]))] : old;
  const renamedPast = pastMapper(renamed);
  return nodes.map((node) => {
    const sync = renamed(node.sync);
    const pasts = node.pasts.map((past) => renamedPast(past));
    if (sync === node.sync && pasts.every((past, i) => past === node.pasts[i])) return node;
    return { ...node, sync: sync.filter((id) => id !== node.id), pasts: pasts.flatMap((past) => past ?? []) };
  });
}

/** An id that no node has. All larger ids are free, too. */
export function freshId(nodes: readonly DraftNode[]): number {
  return nodes.reduce((least, { id }) => Math.max(least, id + 1), 0);
}
