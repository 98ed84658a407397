/** The network between hosts by its figures, for profiles that were not measured and for other machines. */
import type { BetweenHosts, TransferTimings } from "./machine-profile.ts";

export interface Network {
  /** Of one network interface, in GB/s in each direction. */
  readonly rate: number;
  /** Microseconds of a small transfer between two hosts. */
  readonly latency: number;
  /** Of each host. */
  readonly nics: number;
}

/** Of two hosts, the part of a transfer's bytes that each interface sends and receives. A group sends and receives. */
const sentParts: readonly (readonly [TransferTimings["type"], number])[] = [
  ["Allgather", 0.5],
  ["ReduceScatter", 0.5],
  ["Allreduce", 1],
  ["Broadcast", 1],
  ["AllToAll", 0.5],
  ["group", 0.5],
];

export function networkOf({ rate, latency, nics }: Network): BetweenHosts {
  const transfers = sentParts.map(([type, part]): TransferTimings => ({
    type,
    ranks: 2,
    timings: [
      { bytes: 0, microseconds: latency },
      { bytes: 1e6, microseconds: latency + (1e3 * part) / rate },
    ],
  }));
  return { nics, transfers };
}
