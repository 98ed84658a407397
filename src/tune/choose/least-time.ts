/**
 * The least time in which a program can run that copies between ranks, under any schedule. Rewrites may cut such copies,
 * but a link carries all of its bytes, after a first signal and before a last one.
 */
import { touchesPeers } from "../../commands/barriers.ts";
import type { BufferId } from "../../commands/buffer.ts";
import type { Command, CommandStreamId, SlotId } from "../../commands/command.ts";
import type { Program, RankProgram } from "../../commands/program.ts";
import { isGemmLaunch } from "../../schedule/draft/gemm-axes.ts";
import { listOrder } from "../../schedule/draft/order/list-order.ts";
import { interpolatedTime } from "../../simulate/interpolate.ts";
import type { MachineProfile, Timing } from "../../simulate/machine-profile.ts";
import { at } from "../../support/invariant.ts";
import { commandBytes, commandPeer } from "../../trace/command-work.ts";

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
      const peer = command.kind === "copy" ? commandPeer(recorded, list.rank, command) : null;
      if (peer === null || !isBetween(position, peer.rank)) continue;
      const bytes = commandBytes(recorded, list.rank, position) ?? 0;
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
  return Math.min(...sizes.map((size) => interpolatedTime(timings, size) * (bytes / size)));
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

// How the ranks of a program access each other's memory. The choices of a schedule and the model's errors depend on it.

export interface PeerTraffic {
  /** Some kernel accesses a peer's memory. */
  readonly kernels: boolean;
  /** Some copy crosses a link. */
  readonly copies: boolean;
  /** Some GEMM reads data that a copy brought over a link. */
  readonly feedsGemms: boolean;
  /** On some stream a GEMM follows a kernel that accesses a peer's memory: a loop computes before and after it. */
  readonly hasStages: boolean;
}

export function peerTraffic(program: Program): PeerTraffic {
  const arrived = new Set<BufferId>();
  const found = { kernels: false, copies: false, feedsGemms: false, hasStages: false };
  for (const { rank, commands } of program.ranks) {
    const exchanged = new Set<CommandStreamId>();
    for (const command of commands) {
      if (command.kind === "copy" && commandPeer(program, rank, command) !== null) {
        found.copies = true;
        arrived.add(command.destination.buffer);
      }
      if (touchesPeers(program, rank, command)) {
        found.kernels = true;
        exchanged.add(command.stream);
      }
      found.hasStages ||= exchanged.has(command.stream) && isGemmLaunch(command, program);
    }
  }
  const isFed = (command: Command): boolean =>
    command.kind === "launch" &&
    isGemmLaunch(command, program) &&
    command.inputs.some(({ buffer }) => arrived.has(buffer));
  found.feedsGemms = arrived.size > 0 && program.ranks.some(({ commands }) => commands.some(isFed));
  return found;
}

/** Whether ranks exchange data at all. */
export function communicates(program: Program): boolean {
  if (program.transfers.length > 0) return true;
  const { kernels, copies } = peerTraffic(program);
  return kernels || copies;
}
