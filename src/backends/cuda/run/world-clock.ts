/**
 * One clock for all ranks, which puts the times of several GPUs on one axis. Processes under one kernel share its
 * monotonic clock, and nothing is estimated. Others (another time namespace, another host) measure the offset to rank
 * 0's clock by round trips over the rendezvous.
 */
import { readFileSync, readlinkSync } from "node:fs";
import process from "node:process";
import { at } from "../../../support/invariant.ts";
import type { Rendezvous } from "../world.ts";

export interface HostClock {
  /** Equal if two processes read the same clock. */
  readonly name: string;
  /** Milliseconds since an arbitrary time in the past. */
  readonly now: () => number;
}

export interface WorldClock {
  /** Milliseconds on rank 0's clock. */
  readonly now: () => number;
  /** The largest error of `now`, in milliseconds. */
  readonly error: number;
}

const roundTrips = 16;

/** Collective: all ranks call it together. */
export async function openWorldClock(
  { rank, worldSize, allGather }: Pick<Rendezvous, "rank" | "worldSize" | "allGather">,
  host: HostClock = hostClock(),
): Promise<WorldClock> {
  if (worldSize === 1) return { now: host.now, error: 0 };
  const names = (await allGather(new TextEncoder().encode(host.name))).map((bytes) => new TextDecoder().decode(bytes));
  // All ranks see the same names, so all take the same branch.
  if (names.every((name) => name === names[0])) return { now: host.now, error: 0 };
  const own = new Float64Array(2 * roundTrips);
  for (let i = 0; i < roundTrips; i++) {
    own[2 * i] = host.now();
    await allGather(new Uint8Array());
    own[2 * i + 1] = host.now();
  }
  const all = (await allGather(new Uint8Array(own.buffer))).map((bytes) => new Float64Array(bytes.slice().buffer));
  if (rank === 0) return { now: host.now, error: 0 };
  const { offset, error } = clockOffset(own, at(all, 0));
  return { now: () => host.now() - offset, error };
}

/**
 * How far this rank's clock is ahead of the other's. `own` and `other` hold, for each exchange, when the rank sent its
 * bytes and when it had received all bytes. Bytes arrive after they are sent, so for every exchange: own sent - other
 * received <= offset <= own received - other sent.
 */
export function clockOffset(
  own: Float64Array,
  other: Float64Array,
): { readonly offset: number; readonly error: number } {
  let [least, most] = [-Infinity, Infinity];
  for (let i = 0; i + 1 < own.length; i += 2) {
    least = Math.max(least, at(own, i) - at(other, i + 1));
    most = Math.min(most, at(own, i + 1) - at(other, i));
  }
  return { offset: (least + most) / 2, error: Math.max(0, (most - least) / 2) };
}

const nanosecondsPerMillisecond = 1e6;

/** The monotonic clock of this machine's kernel. */
export function hostClock(): HostClock {
  return { name: clockName(), now: () => Number(process.hrtime.bigint()) / nanosecondsPerMillisecond };
}

/** Names the running kernel and the time namespace. If they cannot be read, names this process alone. */
function clockName(): string {
  try {
    return `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()} ${readlinkSync("/proc/self/ns/time")}`;
  } catch {
    return `process ${process.pid} of ${process.title}, ${process.hrtime.bigint()}`;
  }
}
