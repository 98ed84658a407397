/**
 * Reads one rank's list into a Draft and drops its events. `sync` and `pasts` keep the part of their order that other
 * ranks rely on: the work that a signal reports comes before the signal, and commands that rely on a wait come after
 * the wait.
 *
 * Only commands that another rank can observe matter: those that access a peer's memory, or own memory that peers
 * access too, unless both only read. A GEMM that reads data from a copy is not among them.
 */
import { isBlocking, isSignalling, type SlotId } from "../../commands/command.ts";
import type { RankProgram } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import type { Foreign } from "./memory/foreign.ts";
import { createKnownWaits } from "./order/known-waits.ts";
import type { ListOrder } from "./order/list-order.ts";
import { createPasts, type Past, type Pasts } from "./order/pasts.ts";
import { doneByOthers, type Guarantee } from "./order/signal-guarantees.ts";
import type { Memory } from "./memory/memory.ts";
import type { Draft, DraftNode } from "./draft.ts";

/** Facts about other ranks that reading a rank's list requires. */
export interface Others {
  readonly foreign: Foreign;
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
  /** Whatever other ranks observe, and what waits for them: a signal reports all of it. */
  const observed = createPasts<number>(order);
  /** What waits for other ranks without a known guarantee: an access that they observe comes after all of it. */
  const unknown = createPasts<number>(order);
  const known = createKnownWaits(list.rank, order);
  /** Signals and waits of one slot keep their order. */
  const ofSlot = new Map<SlotId, Pasts<number>>();
  for (const [position, command] of list.commands.entries()) {
    if (command.kind === "recordEvent" || command.kind === "waitEvent") continue;
    const id = nodes.length;
    const touches = memory.touches(command);
    const isSeen = touches.some((touch) => touch.rank !== list.rank) || foreign.conflicts(touches);
    const guaranteed = command.kind === "waitSignal" ? next(command.slot) : null;
    const relies = isSeen && !isBlocking(command) && !isSignalling(command);
    const pasts: (Past | null)[] = [];
    if (isSignalling(command)) pasts.push(observed.before(position));
    if (relies) pasts.push(unknown.before(position));
    if (command.kind === "signal" || command.kind === "waitSignal") {
      const slot = ofSlot.get(command.slot) ?? createPasts<number>(order);
      ofSlot.set(command.slot, slot);
      pasts.push(slot.before(position));
      slot.add(position, id);
    }
    nodes.push({
      id,
      command,
      origin: at(list.origins, position),
      transfer: at(list.transferOf, position),
      sources: [position],
      guarantee: guaranteed,
      sync: relies ? known.before(position, touches) : [],
      pasts: pasts.flatMap((past) => past ?? []),
    });
    if (isSeen || isBlocking(command)) observed.add(position, id);
    if (guaranteed !== null) known.add(position, id, guaranteed);
    else if (isBlocking(command)) unknown.add(position, id);
  }
  return { rank: list.rank, streams: list.streams, nodes };
}
