/**
 * The guarantee of a signal for the rank that waits for it: the sender's earlier accesses to other ranks' memory are
 * done, the sender's own memory may be accessed from then on, and so is everything that earlier signals guaranteed to
 * the sender.
 */
import type { SlotId } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import type { ListOrder } from "./list-order.ts";
import { conflict, type Memory, type Touch } from "./memory.ts";

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

/**
 * Whether a command of `rank` with these accesses has to come after a wait for the signal. A null `guarantee` means
 * "any access".
 */
export function concerns(guarantee: Guarantee | null, rank: number, touches: readonly Touch[]): boolean {
  if (guarantee === null) return true;
  const isSenders = touches.some((touch) => touch.rank !== rank && guarantee.senders.has(touch.rank));
  return isSenders || conflict(guarantee.done, touches);
}

/**
 * The guarantees of a wait that matter to a command of `rank` with these accesses: those about the same memory, and the
 * ranks whose memory it covers. null means "any access".
 */
export function guaranteeTo(
  guarantee: Guarantee | null,
  rank: number,
  touches: readonly Touch[],
): { readonly done: readonly Done[]; readonly senders: readonly number[] } | null {
  if (guarantee === null) return null;
  const others = new Set(touches.flatMap((touch) => (touch.rank === rank ? [] : [touch.rank])));
  return {
    done: guarantee.done.filter((touch) => conflict([touch], touches)),
    senders: [...others].filter((other) => guarantee.senders.has(other)),
  };
}

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

/** The past of a signal: the past of `base`, an earlier signal of its rank, and `before`. */
interface Signalled {
  readonly rank: number;
  readonly base: Signalled | null;
  readonly before: readonly Before[];
}

/** For the n-th signal of a slot. `foreign` lists the accesses of other ranks to a rank's memory. */
export function signalGuarantees(
  program: Program,
  orders: readonly ListOrder[],
  memory: Memory,
  foreign: readonly (readonly Touch[])[],
): (slot: SlotId, n: number) => Guarantee | null {
  const signals = signalsOf(program, orders, memory, foreign);
  const known = new Map<Signalled, Guarantee | null>();
  const guarantee = (slot: SlotId, n: number): Guarantee | null => {
    const signal = signals.get(slot)?.[n];
    // A wait without a signal never ends in any order.
    if (signal === undefined) return null;
    const unknown: Signalled[] = [];
    for (let each: Signalled | null = signal; each !== null && !known.has(each); each = each.base) unknown.push(each);
    // A signal that depends on itself never comes.
    for (const each of unknown) known.set(each, null);
    for (const each of unknown.toReversed()) {
      known.set(
        each,
        historyOf(each, each.base === null ? nothing(each.rank) : (known.get(each.base) ?? null), guarantee),
      );
    }
    return known.get(signal) ?? null;
  };
  return guarantee;
}

function nothing(rank: number): Guarantee {
  return { senders: new Set([rank]), done: [] };
}

/** `base`: the history of the signal's base. */
function historyOf(
  { before }: Signalled,
  base: Guarantee | null,
  guarantee: (slot: SlotId, n: number) => Guarantee | null,
): Guarantee | null {
  if (base === null || before.length === 0) return base;
  const senders = new Set(base.senders);
  const done = new Set(base.done);
  for (const item of before) {
    const earlier = item?.kind === "wait" ? guarantee(item.slot, item.n) : null;
    if (item === null || (item.kind === "wait" && earlier === null)) return null;
    for (const touch of item.kind === "touches" ? item.touches : (earlier?.done ?? [])) done.add(touch);
    for (const sender of earlier?.senders ?? []) senders.add(sender);
    if (done.size > longestHistory) return null;
  }
  return { senders, done: [...done] };
}

/**
 * By slot, in list order: the past of each signal, as a difference from an earlier signal. Full pasts would take time
 * quadratic in the length of the list.
 */
function signalsOf(
  { ranks }: Program,
  orders: readonly ListOrder[],
  memory: Memory,
  foreign: readonly (readonly Touch[])[],
): ReadonlyMap<SlotId, readonly Signalled[]> {
  const signals = new Map<SlotId, Signalled[]>();
  for (const { rank, commands } of ranks) {
    const order = at(orders, rank);
    const counting: { readonly position: number; readonly item: Before }[] = [];
    const earlier: { readonly position: number; readonly signal: Signalled }[] = [];
    const waits = new Map<SlotId, number>();
    for (const [position, command] of commands.entries()) {
      if (command.kind === "signal") {
        // The base's past is part of this signal's past, too.
        const base = earlier.findLast((other) => order.before(other.position, position));
        const before = counting.flatMap((other) =>
          order.before(other.position, position) && (base === undefined || !order.before(other.position, base.position))
            ? [other.item]
            : [],
        );
        const signal = { rank, base: base?.signal ?? null, before };
        earlier.push({ position, signal });
        const ofSlot = signals.get(command.slot) ?? [];
        signals.set(command.slot, ofSlot);
        ofSlot.push(signal);
      } else if (command.kind === "waitSignal") {
        const n = waits.get(command.slot) ?? 0;
        waits.set(command.slot, n + 1);
        counting.push({ position, item: { kind: "wait", slot: command.slot, n } });
      } else if (command.kind === "transfer") {
        counting.push({ position, item: null });
      } else {
        // Copies, so that an access differs from the same command's at another position of the list.
        const touches = memory
          .touches(command)
          .flatMap((touch) =>
            touch.rank !== rank || conflict([touch], at(foreign, rank)) ? [{ ...touch, by: rank }] : [],
          );
        if (touches.length > 0) counting.push({ position, item: { kind: "touches", touches } });
      }
    }
  }
  return signals;
}
