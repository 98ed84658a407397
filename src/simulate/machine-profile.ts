/**
 * The measured times of a machine, from which every simulated run is computed. `braid calibrate` writes it as JSON.
 * docs/simulation.md says how each figure is measured. Times are in microseconds.
 */
import type { CollectiveType } from "../commands/collectives.ts";
import { type DType, dtypes } from "../numerics/dtype.ts";
import type { ByClass } from "./command-class.ts";

export interface MachineProfile {
  readonly version: 1;
  /** Machine, versions and date, as in bench/results. */
  readonly machine: string;
  /** The back end that it was measured with. */
  readonly on: "cpu" | "cuda";
  readonly products: readonly GemmGrid[];
  /**
   * GEMMs beside kernels in peers' memory. Without it, a margin costs `usualMarginFactor`, and GEMMs
   * without a margin leave no SMs free.
   */
  readonly margins?: MarginGrid;
  /** The slowdown of GEMMs in a run with many of them. Without it, the device keeps its clock. */
  readonly sustained?: readonly Sustained[];
  /**
   * Attention by dtype. Without it, attention has its usual share of the rate of GEMMs
   * (command-cost.ts).
   */
  readonly attention?: readonly AttentionRates[];
  /** Kernels that are bound by memory (elementwise, reductions, fused units), by the bytes that they read and write. */
  readonly memory: readonly Timing[];
  /**
   * Sums of a few slots, such as the partial results of all devices. Without it, a sum takes as long
   * as a kernel of `memory` with its bytes.
   */
  readonly reductions?: readonly ReductionTimings[];
  /**
   * Kernels that add data in peers' memory, including the signals and waits around them, by the bytes that a rank's
   * kernel reads from and writes to its peers. Without it, such a kernel takes as long as a copy from
   * a peer with its bytes, and the signals cost what they cost elsewhere.
   */
  readonly reductionsInPeers?: readonly Timing[];
  /** Copies within a rank, and over the link of two ranks by a copy engine. */
  readonly localCopies: readonly Timing[];
  readonly peerCopies: readonly Timing[];
  /** Not empty. */
  readonly transfers: readonly TransferTimings[];
  /** Without it, the machine is one host. */
  readonly betweenHosts?: BetweenHosts;
  readonly costs: FixedCosts;
  /**
   * The mean absolute logarithm of measured over predicted times, by class of commands, of programs that the other
   * figures were not taken from. Without it, errors are those of the machines in bench/results.
   */
  readonly residuals?: Residuals;
}

export type Residuals = Partial<ByClass>;

/** The time for this many bytes, from the end of the previous command on the stream to its own end. */
export interface Timing {
  readonly bytes: number;
  readonly microseconds: number;
}

/**
 * A `reduction` over a leading axis, or a `combine` of as many parts, both of one dtype, by the bytes that it reads and
 * writes. The number of slots shows only in the bytes.
 */
export interface ReductionTimings {
  readonly kernel: ReductionTimed;
  readonly dtype: DType;
  readonly timings: readonly Timing[];
}

export const reductionsTimed = ["reduction", "combine"] as const;
export type ReductionTimed = (typeof reductionsTimed)[number];

/**
 * Rates of GEMMs [m, k] by [k, n] in 1e12 floating-point operations per second at every point of a grid; `teraflops` is
 * in row-major order of m, n, k. Each axis is ascending. Of 8-bit floats they are rates in runs of several milliseconds,
 * because devices lower their clocks under these GEMMs at once; of other dtypes those of a GEMM alone.
 */
export interface GemmGrid {
  readonly dtype: DType;
  readonly m: readonly number[];
  readonly n: readonly number[];
  readonly k: readonly number[];
  readonly teraflops: readonly number[];
}

export function isTimedUnderLoad(dtype: DType): boolean {
  return dtypes[dtype].bytes === 1;
}

/** For GEMMs [m, k] by [k, n] at every point of a grid, in row-major order of m, n, k. Axes ascend. */
export interface MarginGrid {
  readonly m: readonly number[];
  readonly n: readonly number[];
  readonly k: readonly number[];
  /**
   * The factor on the time with a margin of `measuredMargin` SMs, at least 1. It depends on the extents, because a
   * device computes as many tiles at once as it has SMs.
   */
  readonly factors: readonly number[];
  /**
   * The part of a kernel in peers' memory that ran beside a GEMM without a margin, from 0 to 1: the library's kernels
   * leave SMs free for some extents and not for others.
   */
  readonly room: readonly number[];
}

/**
 * Rates of attention with a causal mask, and of its backward pass, in 1e12 floating-point operations per second, by the
 * length of a sequence. The mask leaves out half of the scores. Lengths ascend.
 */
export interface AttentionRates {
  readonly dtype: DType;
  readonly lengths: readonly number[];
  readonly forward: readonly number[];
  readonly backward: readonly number[];
}

/**
 * A run with this much time in GEMMs: how many times longer each takes than in the shortest run. A device limited by
 * its power lowers its clock under load. Both ascend.
 */
export interface Sustained {
  readonly microseconds: number;
  readonly factor: number;
}

/** A collective by the larger of a rank's two sides; a group (sends and receives) by what a rank sends or receives. */
export interface TransferTimings {
  readonly type: CollectiveType | "group";
  readonly ranks: number;
  readonly timings: readonly Timing[];
}

/** The network between hosts. */
export interface BetweenHosts {
  /** The network interfaces of a host, which its devices share evenly. */
  readonly nics: number;
  /**
   * Of teams with one device per host, no other of which uses the network: `ranks` is the number of hosts. Not empty.
   */
  readonly transfers: readonly TransferTimings[];
}

export interface FixedCosts {
  /** An empty run. */
  readonly run: number;
  /** The part of every kernel's time before it occupies the device, when kernels of other streams can run. */
  readonly launch: number;
  /** From an event on one stream to its wait on another. */
  readonly event: number;
  /**
   * The delay of a kernel that has waited for another stream or a peer, however long ago that finished. Kernels of
   * other streams can run meanwhile. Without a measurement 0.
   */
  readonly join: number;
  /** From a signal's predecessor to the wait on a peer. */
  readonly signal: number;
  /** The host's time to issue a command, if a run is not a graph. */
  readonly issue: number;
  /**
   * How many times longer a GEMM and a transfer take beside each other, because the library's kernels share the device.
   * At least 1.
   */
  readonly underTransfer: number;
}

/** The number of blocks of a kernel in peers' memory: a GEMM that leaves this many SMs free lets it run. */
export const measuredMargin = 8;

/** About the loss from leaving 8 of 132 SMs free. */
export const usualMarginFactor = 1.04;

// The network between hosts by its figures, for profiles that were not measured and for other machines.

interface Network {
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
