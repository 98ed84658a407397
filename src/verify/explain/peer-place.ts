/**
 * Where a command that touches a peer's memory belongs in that peer's program: at the peer's half of the same
 * communication, found through the slots that both halves use. This makes a rank's own commands comparable with what
 * others do to its memory, even if each rank has a different program.
 *
 *   rank 0                         rank 1
 *   wait x; copy -> T4; signal y   5: Recv T4: signal x   6: ...   7: Wait: wait y        the copy belongs to statement 5 of rank 1
 */
import type { Command, Origin, SlotId } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import type { CommandPlace } from "../finding.ts";

/**
 * The place of the peer's half on `rank`, in the run of `place`; `place` itself if it is on `rank`, or no slot leads
 * there.
 */
export function placeOnRank({ ranks, slots }: Program, place: CommandPlace, rank: number): CommandPlace {
  if (place.rank === rank || place.command === null) return place;
  const own = at(ranks, place.rank);
  const origin = at(own.origins, place.command);
  const shared = new Set<SlotId>();
  for (const [index, command] of own.commands.entries()) {
    const slot = slotOf(command);
    if (slot === null || !isSame(at(own.origins, index), origin)) continue;
    const { signaller, waiter } = at(slots, slot);
    if (signaller === rank || waiter === rank) shared.add(slot);
  }
  const peer = at(ranks, rank);
  const half = peer.commands.findIndex((command) => {
    const slot = slotOf(command);
    return slot !== null && shared.has(slot);
  });
  if (half < 0) return place;
  const { path, iteration } = at(peer.origins, half);
  return { ...place, rank, command: half, path, iteration };
}

function slotOf(command: Command): SlotId | null {
  return command.kind === "signal" || command.kind === "waitSignal" ? command.slot : null;
}

function isSame(a: Origin, b: Origin): boolean {
  return a.path.join() === b.path.join() && a.iteration.join() === b.iteration.join();
}
