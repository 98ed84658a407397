/**
 * Reads one rank's list into a Draft and drops its events. `sync` keeps the part of their order that other ranks rely
 * on: the work that a signal reports comes before the signal, and commands that rely on a wait come after the wait.
 *
 * Only commands that another rank can observe matter: those that access a peer's memory, or own memory that peers
 * access too, unless both only read. A GEMM that reads data from a copy is not among them.
 */
import { isBlocking, isSignalling, type SlotId } from "../../commands/command.ts";
import type { RankProgram } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import type { ListOrder } from "./list-order.ts";
import { concerns, type Done, doneByOthers, type Guarantee, guaranteeTo } from "./signal-guarantees.ts";
import { conflict, type Memory, type Touch } from "./memory.ts";
import type { Draft, DraftCommand, DraftNode } from "./draft.ts";

/** Facts about other ranks that reading a rank's list requires. */
export interface Others {
  /** The accesses of other ranks to this rank's memory. */
  readonly foreign: readonly Touch[];
  /** The guarantee of the n-th signal of a slot. */
  readonly guarantee: (slot: SlotId, n: number) => Guarantee | null;
}

export function readDraft(list: RankProgram, order: ListOrder, memory: Memory, { foreign, guarantee }: Others): Draft {
  const waits = new Map<SlotId, number>();
  const next = (slot: SlotId): Guarantee | null => {
    const n = waits.get(slot) ?? 0;
    waits.set(slot, n + 1);
    const history = guarantee(slot, n);
    return history === null ? null : doneByOthers(history, list.rank);
  };
  const nodes: DraftNode[] = [];
  /** Nodes that later nodes may have to follow, with their roles. */
  const noticed: Noticed[] = [];
  for (const [position, command] of list.commands.entries()) {
    if (command.kind === "recordEvent" || command.kind === "waitEvent") continue;
    const touches = memory.touches(command);
    const seen = touches.some((touch) => touch.rank !== list.rank) || conflict(touches, foreign);
    const role: Role = { command, touches, seen, guarantee: command.kind === "waitSignal" ? next(command.slot) : null };
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
      guarantee: role.guarantee,
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
 * Drops waits that guarantee nothing beyond earlier waits for this access. A signal reports everything that its sender
 * has done, so the second chunk's signal also reports that the first chunk has arrived. At least one wait remains for
 * each rank whose memory is accessed; it reports that the rank has begun.
 */
function withoutRepeated(before: readonly Noticed[], rank: number, { command, touches }: Role): readonly Noticed[] {
  if (isSignalling(command) || isBlocking(command)) return before;
  const done = new Set<Done>();
  const senders = new Set<number>();
  return before.filter(({ role: { command: earlier, guarantee } }) => {
    const news = earlier.kind === "waitSignal" ? guaranteeTo(guarantee, rank, touches) : null;
    if (news === null) return true;
    const isNew = news.done.some((each) => !done.has(each)) || news.senders.some((each) => !senders.has(each));
    for (const each of news.done) done.add(each);
    for (const each of news.senders) senders.add(each);
    return isNew;
  });
}

interface Role {
  readonly command: DraftCommand;
  readonly touches: readonly Touch[];
  readonly seen: boolean;
  /** For a wait for a signal; null means "any access". */
  readonly guarantee: Guarantee | null;
}

/** Whether other ranks rely on the order of the two. Two accesses to the same memory keep their order in any case. */
function mustStay(rank: number, earlier: Role, later: Role): boolean {
  if (isSignalling(later.command) && (earlier.seen || isBlocking(earlier.command))) return true;
  if (isBlocking(earlier.command) && later.seen) return concerns(earlier.guarantee, rank, later.touches);
  const [a, b] = [earlier.command, later.command];
  if (a.kind === "transfer" && b.kind === "transfer") return true;
  const [slotA, slotB] = [slotOf(a), slotOf(b)];
  return slotA !== null && slotA === slotB;
}

function slotOf(command: DraftCommand): number | null {
  return command.kind === "signal" || command.kind === "waitSignal" ? command.slot : null;
}
