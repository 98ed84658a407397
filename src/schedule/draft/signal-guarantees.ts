/**
 * What a signal guarantees the rank that waits for it: what its sender has done to others' memory before, that the
 * sender's own memory may be touched from then on, and everything that was guaranteed to the sender by signals that it
 * had waited for.
 */
import type { SlotId } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import type { ListOrder } from "./list-order.ts";
import { conflict, type Memory, type Touch } from "./memory.ts";

export interface Guarantee {
  /** The ranks whose own memory it covers. */
  readonly senders: ReadonlySet<number>;
  /** Accesses to the memory of other ranks, and to own memory that others touch. */
  readonly done: readonly Done[];
}

/** An access, and the rank that made it. */
export interface Done extends Touch {
  readonly by: number;
}

/** Longer histories are treated as "any access". */
const longestHistory = 256;

/**
 * Whether a command of `rank` with these touches has to stay after a wait for the signal. `guarantee`: null for "any
 * access".
 */
export function concerns(guarantee: Guarantee | null, rank: number, touches: readonly Touch[]): boolean {
  if (guarantee === null) return true;
  const isSenders = touches.some((touch) => touch.rank !== rank && guarantee.senders.has(touch.rank));
  return isSenders || conflict(guarantee.done, touches);
}

/**
 * What a wait guarantees a command of `rank` with these touches: about the same memory, and about which ranks' memory;
 * null for "any access".
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

/** Without what `rank`, which waits, has done itself. */
export function doneByOthers(guarantee: Guarantee, rank: number): Guarantee {
  return { ...guarantee, done: guarantee.done.filter(({ by }) => by !== rank) };
}

/**
 * Before a signal: a wait, with its number on its slot, or touches of memory of more than one rank; null for a
 * transfer.
 */
type Before =
  | { readonly kind: "wait"; readonly slot: SlotId; readonly n: number }
  | { readonly kind: "touches"; readonly touches: readonly Done[] }
  | null;

/** What comes before the signal: everything before `base`, an earlier signal of its rank, and `before`. */
interface Signalled {
  readonly rank: number;
  readonly base: Signalled | null;
  readonly before: readonly Before[];
}

/** For the n-th signal of a slot. `foreign`: what other ranks do to a rank's memory. */
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
    // A wait without its signal never ends, in any order.
    if (signal === undefined) return null;
    const unknown: Signalled[] = [];
    for (let each: Signalled | null = signal; each !== null && !known.has(each); each = each.base) unknown.push(each);
    // A signal that waits for itself never comes either.
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
 * By slot, in list order: what streams and events put before each signal. Each is given by what it adds to an earlier
 * one; otherwise the time would grow with the square of the list.
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
        // What is before the base is before this one, too.
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
