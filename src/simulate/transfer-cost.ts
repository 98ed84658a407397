/**
 * The times of the library's transfers. A team on several hosts moves data within each of them and between them at once:
 * the transfer takes as long as the slower of both, and what a device sends to other hosts holds its network interface.
 *
 *   team of n hosts, k devices on each     within a host   as the collective over k ranks
 *                                          between hosts   as the collective over n ranks, of 1 / k of the bytes:
 *                                                          each device sends its part
 */
import { allRanksOf, collectives } from "../commands/collectives.ts";
import type { Transfer } from "../commands/command.ts";
import type { Program } from "../commands/program.ts";
import { at } from "../support/invariant.ts";
import { commandBytes, groupBytes } from "../trace/command-work.ts";
import { type Assume, assumedErrors, doublings } from "./assumption.ts";
import type { BetweenHosts, MachineProfile, Timing, TransferTimings } from "./machine-profile.ts";
import { timed } from "./interpolate.ts";

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

// The times of transfers. A team of another size than the measured ones gets the times of the nearest, scaled. A ring of
// D ranks takes D - 1 steps, so the time of a small transfer grows with D - 1. In these steps a rank moves (D - 1) / D of
// the bytes, except where a root sends or gets a whole tensor. Between hosts, with one rank on each, NCCL goes by trees
// (Allreduce, Broadcast) and by PAT (Allgather and ReduceScatter, since NCCL 2.23), whose steps grow with log2 D.

/** The transfers whose times are wanted. */
type Wanted = Pick<TransferTimings, "type" | "ranks">;

/** Those of the type, or of the type that stands for it. Says what was assumed. */
export function timingsOfTransfer(
  transfers: readonly TransferTimings[],
  wanted: Wanted,
  assume: Assume,
  unit: "ranks" | "hosts" = "ranks",
): readonly Timing[] {
  const { type, ranks } = wanted;
  const alike = (other: TransferTimings["type"]): readonly TransferTimings[] =>
    transfers.filter((each) => each.type === other);
  const own = alike(type);
  const stand = own.length > 0 || type === "group" ? own : alike(collectives[type].timedLike);
  const nearest = (stand.length > 0 ? stand : transfers).toSorted(
    (a, b) => Math.abs(a.ranks - ranks) - Math.abs(b.ranks - ranks),
  );
  const used = at(nearest, 0);
  const scale = scaleOf(wanted, used, unit);
  const [asked, taken] = [transferText(wanted, unit), transferText(used, unit)];
  if (asked !== taken) {
    const error = Math.hypot(
      used.type === type ? 0 : assumedErrors.otherCollective,
      assumedErrors.otherTeam * doublings(ranks, used.ranks),
    );
    const how = scale === null ? "" : `, ${scaleText(scale)}`;
    assume({ text: `${asked} is timed as ${taken}${how}`, of: "transfers", error });
  }
  return scale === null ? used.timings : scaled(used.timings, scale);
}

interface Scale {
  readonly latency: number;
  /** Of the time that grows with the bytes. */
  readonly bytes: number;
}

/** Null for equal sizes, for groups, and for a team of one, which has no steps. */
function scaleOf({ type, ranks }: Wanted, used: Wanted, unit: string): Scale | null {
  if (type === "group" || used.type === "group" || ranks === used.ranks || ranks < 2 || used.ranks < 2) return null;
  const { reads, writes, splitsInput, splitsOutput } = collectives[type];
  const isShared = splitsInput || splitsOutput || (reads === "all" && writes === "all");
  const part = (size: number): number => (isShared ? (size - 1) / size : 1);
  const latency = unit === "hosts" ? Math.log2(ranks) / Math.log2(used.ranks) : (ranks - 1) / (used.ranks - 1);
  return { latency, bytes: part(ranks) / part(used.ranks) };
}

/** The time of the smallest transfer that was measured is latency. */
function scaled(timings: readonly Timing[], { latency, bytes }: Scale): readonly Timing[] {
  const least = at(timings, 0).microseconds;
  return timings.map((timing) => ({
    ...timing,
    microseconds: least * latency + (timing.microseconds - least) * bytes,
  }));
}

function scaleText({ latency, bytes }: Scale): string {
  const times = (factor: number): string => String(Number(factor.toFixed(2)));
  return `with ${times(latency)} times its latency and ${times(bytes)} times its time per byte`;
}

function transferText({ type, ranks }: Wanted, unit: string): string {
  const where = unit === "hosts" ? " between hosts" : "";
  return type === "group" ? `a group of sends and receives${where}` : `${type} over ${ranks} ${unit}`;
}
