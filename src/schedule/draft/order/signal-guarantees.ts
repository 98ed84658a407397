/**
 * The guarantee of a signal for the rank that waits for it: the sender's earlier accesses to other ranks' memory are
 * done, the sender's own memory may be accessed from then on, and so is everything that earlier signals guaranteed to
 * the sender.
 */
import type { SlotId } from "../../../commands/command.ts";
import type { Program } from "../../../commands/program.ts";
import { at } from "../../../support/invariant.ts";
import type { Foreign } from "../memory/foreign.ts";
import type { ListOrder } from "./list-order.ts";
import type { Memory } from "../memory/memory.ts";
import type { Touch } from "../memory/touch.ts";
import { createPasts, type Past, unknownOf } from "./pasts.ts";

export interface Guarantee {
  /** The ranks whose own memory it covers. */
  readonly senders: ReadonlySet<number>;
  /** Accesses to the memory of other ranks, and to own memory that other ranks access. */
  readonly done: readonly Done[];
}

/** An access, and the rank that made it. */
export interface Done extends Touch {
  readonly by: number;
}

/** Longer histories are treated as "any access". */
const longestHistory = 256;

/** The guarantee without the accesses of `rank`, the waiting rank itself. */
export function doneByOthers(guarantee: Guarantee, rank: number): Guarantee {
  return { ...guarantee, done: guarantee.done.filter(({ by }) => by !== rank) };
}

/**
 * An element of a signal's past: a wait, with its number on its slot, or accesses to memory that several ranks touch.
 * null is a transfer.
 */
type Before =
  | { readonly kind: "wait"; readonly slot: SlotId; readonly n: number }
  | { readonly kind: "touches"; readonly touches: readonly Done[] }
  | null;

/** A signal's rank and past. */
interface Signalled {
  readonly rank: number;
  readonly past: Past<Before> | null;
}

/** For the n-th signal of a slot. */
export function signalGuarantees(
  program: Program,
  orders: readonly ListOrder[],
  memory: Memory,
  foreign: Foreign,
): (slot: SlotId, n: number) => Guarantee | null {
  const signals = signalsOf(program, orders, memory, foreign);
  const known = new Map<Past<Before>, Guarantee | null>();
  const guarantee = (slot: SlotId, n: number): Guarantee | null => {
    const signal = signals.get(slot)?.[n];
    // A wait without a signal never ends in any order.
    if (signal === undefined) return null;
    const { rank, past } = signal;
    if (past === null) return nothing(rank);
    const unknown = unknownOf(past, known);
    // A signal that depends on itself never comes.
    for (const each of unknown) known.set(each, null);
    for (const each of unknown) {
      const base = each.base === null ? nothing(rank) : (known.get(each.base) ?? null);
      known.set(each, historyOf(each, base, guarantee));
    }
    return known.get(past) ?? null;
  };
  return guarantee;
}

function nothing(rank: number): Guarantee {
  return { senders: new Set([rank]), done: [] };
}

/** `base`: the history of the set's base. */
function historyOf(
  { items }: Past<Before>,
  base: Guarantee | null,
  guarantee: (slot: SlotId, n: number) => Guarantee | null,
): Guarantee | null {
  if (base === null) return null;
  const senders = new Set(base.senders);
  const done = new Set(base.done);
  for (const item of items) {
    const earlier = item?.kind === "wait" ? guarantee(item.slot, item.n) : null;
    if (item === null || (item.kind === "wait" && earlier === null)) return null;
    for (const touch of item.kind === "touches" ? item.touches : (earlier?.done ?? [])) done.add(touch);
    for (const sender of earlier?.senders ?? []) senders.add(sender);
    if (done.size > longestHistory) return null;
  }
  return { senders, done: [...done] };
}

/** By slot, in list order. */
function signalsOf(
  { ranks }: Program,
  orders: readonly ListOrder[],
  memory: Memory,
  foreign: Foreign,
): ReadonlyMap<SlotId, readonly Signalled[]> {
  const signals = new Map<SlotId, Signalled[]>();
  for (const { rank, commands } of ranks) {
    const pasts = createPasts<Before>(at(orders, rank));
    const waits = new Map<SlotId, number>();
    for (const [position, command] of commands.entries()) {
      if (command.kind === "signal") {
        const ofSlot = signals.get(command.slot) ?? [];
        signals.set(command.slot, ofSlot);
        ofSlot.push({ rank, past: pasts.before(position) });
      } else if (command.kind === "waitSignal") {
        const n = waits.get(command.slot) ?? 0;
        waits.set(command.slot, n + 1);
        pasts.add(position, { kind: "wait", slot: command.slot, n });
      } else if (command.kind === "transfer") {
        pasts.add(position, null);
      } else {
        // Copies, so that an access differs from the same command's at another position of the list.
        const touches = memory
          .touches(command)
          .flatMap((touch) => (touch.rank !== rank || foreign.conflicts([touch]) ? [{ ...touch, by: rank }] : []));
        if (touches.length > 0) pasts.add(position, { kind: "touches", touches });
      }
    }
  }
  return signals;
}
