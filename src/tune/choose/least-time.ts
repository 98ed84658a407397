/**
 * The least time in which a program can run that copies between ranks, under any schedule. Rewrites may cut such copies,
 * but a link carries all of its bytes, after a first signal and before a last one.
 */
import type { RankProgram, Program } from "../../commands/program.ts";
import { touchesPeers } from "../../commands/barriers.ts";
import type { SlotId } from "../../commands/command.ts";
import { listOrder } from "../../schedule/draft/order/list-order.ts";
import { timeOf } from "../../simulate/interpolate.ts";
import type { MachineProfile, Timing } from "../../simulate/machine-profile.ts";
import { at } from "../../support/invariant.ts";
import { bytesOf, peerOf } from "../../trace/command-work.ts";

/** Milliseconds; 0 if nothing is known, such as for programs with kernels in peers' memory. */
export function leastTime(recorded: Program, { peerCopies, costs }: MachineProfile): number {
  if (recorded.ranks.some(({ rank, commands }) => commands.some((command) => touchesPeers(recorded, rank, command))))
    return 0;
  /** Microseconds, by the rank that the bytes leave, and by the rank that they reach. */
  const [out, into] = [recorded.ranks.map(() => 0), recorded.ranks.map(() => 0)];
  const answered = answeredSlots(recorded);
  for (const list of recorded.ranks) {
    const isBetween = betweenSignals(recorded, list, answered);
    for (const [position, command] of list.commands.entries()) {
      const peer = command.kind === "copy" ? peerOf(recorded, list.rank, command) : null;
      if (peer === null || !isBetween(position, peer.rank)) continue;
      const bytes = bytesOf(recorded, list.rank, position) ?? 0;
      const [from, to] = peer.direction === "from" ? [peer.rank, list.rank] : [list.rank, peer.rank];
      const least = leastInParts(peerCopies, bytes);
      out[from] = at(out, from) + least;
      into[to] = at(into, to) + least;
    }
  }
  const longest = Math.max(...out, ...into);
  return longest === 0 ? 0 : (costs.run + 2 * costs.signal + longest) / 1000;
}

/** Of copies of that many bytes together: each has the rate of its size, none of which is larger than the whole. */
function leastInParts(timings: readonly Timing[], bytes: number): number {
  if (bytes === 0) return 0;
  const sizes = [bytes, ...timings.map((timing) => timing.bytes).filter((size) => size > 0 && size < bytes)];
  return Math.min(...sizes.map((size) => timeOf(timings, size) * (bytes / size)));
}

/** Slots each of whose signals a wait takes. */
function answeredSlots({ ranks, slots }: Program): ReadonlySet<SlotId> {
  const open = slots.map(() => 0);
  for (const { commands } of ranks) {
    for (const command of commands) {
      if (command.kind === "signal") open[command.slot] = at(open, command.slot) + 1;
      else if (command.kind === "waitSignal") open[command.slot] = at(open, command.slot) - 1;
    }
  }
  return new Set(slots.flatMap(({ id }) => (open[id] === 0 ? id : [])));
}

/** Whether a copy comes after a signal of its peer and before one that another rank takes. Rewrites keep both. */
function betweenSignals(
  { slots }: Program,
  list: RankProgram,
  answered: ReadonlySet<SlotId>,
): (position: number, peer: number) => boolean {
  const order = listOrder(list);
  const waits = new Map<number, number[]>();
  const signals: number[] = [];
  for (const [position, command] of list.commands.entries()) {
    if (command.kind === "signal" && answered.has(command.slot)) signals.push(position);
    if (command.kind !== "waitSignal") continue;
    const { signaller } = at(slots, command.slot);
    waits.set(signaller, [...(waits.get(signaller) ?? []), position]);
  }
  return (position, peer) =>
    (waits.get(peer) ?? []).some((wait) => order.before(wait, position)) &&
    signals.some((signal) => order.before(position, signal));
}
