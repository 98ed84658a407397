/**
 * The times of transfers. A team of another size than the measured ones gets the times of the nearest, scaled. A ring of
 * D ranks takes D - 1 steps, so the time of a small transfer grows with D - 1. In these steps a rank moves (D - 1) / D of
 * the bytes, except where a root sends or gets a whole tensor. Between hosts, with one rank on each, NCCL goes by trees
 * (Allreduce, Broadcast) and by PAT (Allgather and ReduceScatter, since NCCL 2.23), whose steps grow with log2 D.
 */
import { collectives } from "../commands/collectives.ts";
import { at } from "../support/invariant.ts";
import { type Assume, assumedErrors, doublings } from "./assumption.ts";
import type { Timing, TransferTimings } from "./machine-profile.ts";

/** The transfers whose times are wanted. */
export type Wanted = Pick<TransferTimings, "type" | "ranks">;

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
