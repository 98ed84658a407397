/**
 * What a signal tells the rank that waits for it: what its sender has done to others' memory before, and that the sender's own memory
 * may be touched from then on. A sender that has itself waited before passes on what it was told, which is taken for anything.
 */
import type { SlotId } from "../commands/command.ts";
import type { Program } from "../commands/program.ts";
import { at } from "../support/invariant.ts";
import type { ListOrder } from "./list-order.ts";
import { conflict, type Memory, type Touch } from "./memory.ts";

export interface Told {
  readonly sender: number;
  /** To the memory of other ranks; null for anything. */
  readonly done: readonly Touch[] | null;
}

/** Whether a command with these touches has to stay behind a wait for the signal. */
export function concerns({ sender, done }: Told, touches: readonly Touch[]): boolean {
  return done === null || touches.some(({ rank }) => rank === sender) || conflict(done, touches);
}

/** Of the n-th signal of a slot. */
export function toldBySignals(
  { ranks, slots }: Program,
  orders: readonly ListOrder[],
  memory: Memory,
): (slot: SlotId, n: number) => Told {
  const ofSlot = new Map<SlotId, Told[]>();
  for (const { rank, commands } of ranks) {
    const order = at(orders, rank);
    // Positions of what can count, so that the many commands on own memory are not looked at for every signal.
    const counting: { readonly position: number; readonly touches: readonly Touch[] | null }[] = [];
    for (const [position, command] of commands.entries()) {
      if (command.kind === "signal") {
        const earlier = counting.filter((other) => order.before(other.position, position));
        const isRelay = earlier.some(({ touches }) => touches === null);
        const done = isRelay ? null : earlier.flatMap(({ touches }) => touches ?? []);
        const known = ofSlot.get(command.slot);
        if (known === undefined) ofSlot.set(command.slot, [{ sender: rank, done }]);
        else known.push({ sender: rank, done });
      } else if (command.kind === "waitSignal" || command.kind === "transfer") {
        counting.push({ position, touches: null });
      } else {
        const touches = memory.touches(command).filter((touch) => touch.rank !== rank);
        if (touches.length > 0) counting.push({ position, touches });
      }
    }
  }
  // A wait without its signal never ends, in any order.
  return (slot, n) => ofSlot.get(slot)?.[n] ?? { sender: at(slots, slot).signaller, done: null };
}
