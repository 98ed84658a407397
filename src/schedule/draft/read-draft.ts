/**
 * Reads one rank's list into a Draft. Events go; of the order that they and the streams gave, what other ranks rely on is kept as
 * `sync`: what a signal tells must have happened, what follows a wait must stay behind it.
 *
 * Only commands that another rank can notice count: those that touch a peer's memory, or own memory that peers touch too, unless
 * both only read. A product that reads what a copy has brought is none of them.
 */
import { isBlocking, isSignalling } from "../../commands/blocking.ts";
import type { SlotId } from "../../commands/command.ts";
import type { RankProgram } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import type { ListOrder } from "./list-order.ts";
import { concerns, type Done, doneByOthers, type Told, toldOf } from "./told-by-signals.ts";
import { conflict, type Memory, type Touch } from "./memory.ts";
import type { Draft, DraftCommand, DraftNode } from "./draft.ts";

/** What a rank must know of the others to read its own list. */
export interface Others {
  /** What other ranks do to this one's memory. */
  readonly foreign: readonly Touch[];
  /** What the n-th signal of a slot tells of. */
  readonly told: (slot: SlotId, n: number) => Told | null;
}

export function readDraft(list: RankProgram, order: ListOrder, memory: Memory, { foreign, told }: Others): Draft {
  const waits = new Map<SlotId, number>();
  const next = (slot: SlotId): Told | null => {
    const n = waits.get(slot) ?? 0;
    waits.set(slot, n + 1);
    const account = told(slot, n);
    return account === null ? null : doneByOthers(account, list.rank);
  };
  const nodes: DraftNode[] = [];
  /** Nodes that a later one may have to stay behind, with how they matter. */
  const noticed: Noticed[] = [];
  for (const [position, command] of list.commands.entries()) {
    if (command.kind === "recordEvent" || command.kind === "waitEvent") continue;
    const touches = memory.touches(command);
    const seen = isNoticed(list.rank, touches, foreign);
    const role: Role = { command, touches, seen, told: command.kind === "waitSignal" ? next(command.slot) : null };
    const matters = seen || isBlocking(command) || isSignalling(command);
    const before = matters
      ? noticed.filter((other) => mustStay(list.rank, other.role, role) && order.before(other.position, position))
      : [];
    const node: DraftNode = {
      id: nodes.length,
      command,
      origin: at(list.origins, position),
      transfer: at(list.transferOf, position),
      sources: [position],
      told: role.told,
      sync: withoutRepeated(before, list.rank, role).map((other) => other.node.id),
    };
    nodes.push(node);
    if (matters) noticed.push({ node, position, role });
  }
  return { rank: list.rank, streams: list.streams, nodes };
}

interface Noticed {
  readonly node: DraftNode;
  readonly position: number;
  readonly role: Role;
}

/**
 * Without waits that tell an access nothing that waits before them have not told: a signal tells all that its sender has done, and so the
 * second chunk's also that the first has come. Of the ranks whose memory is touched, one wait at least says that they have begun.
 */
function withoutRepeated(before: readonly Noticed[], rank: number, { command, touches }: Role): readonly Noticed[] {
  if (isSignalling(command) || isBlocking(command)) return before;
  const done = new Set<Done>();
  const senders = new Set<number>();
  return before.filter(({ role: { command: earlier, told } }) => {
    const news = earlier.kind === "waitSignal" ? toldOf(told, rank, touches) : null;
    if (news === null) return true;
    const isNew = news.done.some((each) => !done.has(each)) || news.senders.some((each) => !senders.has(each));
    for (const each of news.done) done.add(each);
    for (const each of news.senders) senders.add(each);
    return isNew;
  });
}

function isNoticed(rank: number, touches: readonly Touch[], foreign: readonly Touch[]): boolean {
  return touches.some((touch) => touch.rank !== rank) || conflict(touches, foreign);
}

interface Role {
  readonly command: DraftCommand;
  readonly touches: readonly Touch[];
  readonly seen: boolean;
  /** Of a wait for a signal; null for anything. */
  readonly told: Told | null;
}

/** Whether an order of the two means something to other ranks. Two accesses to the same memory keep theirs in any case. */
function mustStay(rank: number, earlier: Role, later: Role): boolean {
  if (isSignalling(later.command) && (earlier.seen || isBlocking(earlier.command))) return true;
  if (isBlocking(earlier.command) && later.seen) return concerns(earlier.told, rank, later.touches);
  const [a, b] = [earlier.command, later.command];
  if (a.kind === "transfer" && b.kind === "transfer") return true;
  const [slotA, slotB] = [slotOf(a), slotOf(b)];
  return slotA !== null && slotA === slotB;
}

function slotOf(command: DraftCommand): number | null {
  return command.kind === "signal" || command.kind === "waitSignal" ? command.slot : null;
}
