/**
 * The times of the library's transfers. A team on several hosts moves data within each of them and between them at once:
 * the transfer takes as long as the slower of both, and what a device sends to other hosts holds its network interface.
 *
 *   team of n hosts, k devices on each     within a host   as the collective over k ranks
 *                                          between hosts   as the collective over n ranks, of 1 / k of the bytes:
 *                                                          each device sends its part
 */
import { allRanksOf } from "../commands/collectives.ts";
import type { Transfer } from "../commands/command.ts";
import type { Program } from "../commands/program.ts";
import { at } from "../support/invariant.ts";
import { commandBytes, groupBytes } from "../trace/command-work.ts";
import { type Assume, assumedErrors } from "./assumption.ts";
import type { BetweenHosts, MachineProfile, Timing } from "./machine-profile.ts";
import { timed } from "./interpolate.ts";
import { timingsOfTransfer, type Wanted } from "./transfer-timings.ts";

export interface TransferCost {
  /** Microseconds, if no other transfer uses the network interface. */
  readonly busy: number;
  readonly network: NetworkUse | null;
}

/** What a transfer asks of a network interface. Others wait for it. Times are microseconds. */
export interface NetworkUse {
  /** Numbered over all hosts. */
  readonly nic: number;
  /** Before the interface is needed. */
  readonly latency: number;
  /** For which it is held. */
  readonly busy: number;
}

export function transferCosts(
  program: Program,
  { transfers, betweenHosts }: MachineProfile,
  assume: Assume,
): (rank: number, index: number, command: Transfer) => TransferCost {
  const { devicesPerHost = program.ranks.length * (program.replicas ?? 1) } = program;
  const hostOf = (rank: number): number => Math.floor(rank / devicesPerHost);
  const within = cached((wanted) => timingsOfTransfer(transfers, wanted, assume));
  const between = cached((wanted) => timingsOfTransfer(betweenHosts?.transfers ?? [], wanted, assume, "hosts"));
  return (rank, index, { operation }) => {
    const type = operation.kind === "group" ? "group" : operation.type;
    const team = operation.kind === "group" ? [rank, ...operation.ops.map(({ peer }) => peer)] : allRanksOf(operation);
    const hosts = new Set(team.map(hostOf)).size;
    const bytes = commandBytes(program, rank, index) ?? 0;
    const ranks = type === "group" ? 2 : team.length;
    if (hosts === 1 || betweenHosts === undefined) {
      if (hosts > 1) assume(noNetwork);
      return { busy: timed(within({ type, ranks }), bytes, "transfers", assume), network: null };
    }
    const isHere = (other: number): boolean => hostOf(other) === hostOf(rank);
    const here = type === "group" ? 1 : team.filter(isHere).length;
    const sent =
      operation.kind === "group"
        ? groupBytes(operation.ops.filter(({ peer }) => !isHere(peer)))
        : operation.type === "AllToAll"
          ? bytes
          : bytes / here;
    const timings = between({ type, ranks: type === "group" ? 2 : hosts });
    const time = timed(timings, sent, "transfers", assume);
    const ownTime = here > 1 ? timed(within({ type, ranks: here }), bytes, "transfers", assume) : 0;
    const latency = Math.min(time, at(timings, 0).microseconds);
    const network = { nic: nicOf(rank, devicesPerHost, betweenHosts), latency, busy: time - latency };
    return { busy: Math.max(time, ownTime), network };
  };
}

const noNetwork = {
  text: "transfers between hosts are timed as within a host: the profile has no betweenHosts",
  of: "transfers",
  error: assumedErrors.otherNetwork,
} as const;

/** The devices of a host share its network interfaces evenly. */
function nicOf(rank: number, devicesPerHost: number, { nics }: BetweenHosts): number {
  const [host, place] = [Math.floor(rank / devicesPerHost), rank % devicesPerHost];
  return host * nics + Math.floor((place * nics) / devicesPerHost);
}

function cached(make: (wanted: Wanted) => readonly Timing[]): (wanted: Wanted) => readonly Timing[] {
  const known = new Map<string, readonly Timing[]>();
  return (wanted) => {
    const key = `${wanted.type} ${wanted.ranks}`;
    const timings = known.get(key) ?? make(wanted);
    known.set(key, timings);
    return timings;
  };
}
