/**
 * What a machine was measured to take: everything that a simulated run is computed from. `braid calibrate` writes it, as JSON.
 * docs/simulation.md says how each figure is measured. Times are in microseconds.
 */
import type { CollectiveType } from "../commands/collectives.ts";
import type { DType } from "../numerics/dtype.ts";

export interface MachineProfile {
  readonly version: 1;
  /** Machine, versions and date, as results in bench/results have them. */
  readonly machine: string;
  readonly products: readonly GemmGrid[];
  /**
   * Gemms beside kernels in peers' memory. Profiles of earlier versions have none: a margin then costs `usualMarginFactor`, and without one there is no
   * room.
   */
  readonly margins?: MarginGrid;
  /** What products take where a run has many; profiles of earlier versions have nothing, as if the device kept its clock. */
  readonly sustained?: readonly Sustained[];
  /** Kernels that are bound by memory: elementwise, reductions, fused units. By the bytes that they read and write. */
  readonly memory: readonly Timing[];
  /**
   * Sums of a few slots, such as the partial results of all devices. Profiles of earlier versions have none: a sum then takes what a kernel
   * of `memory` takes for its bytes.
   */
  readonly reductions?: readonly ReductionTimings[];
  /**
   * Kernels that add what lies in peers' memory, with the signals and waits around them, which are part of them: by the bytes that a rank's
   * kernel reads from its peers and writes there. Profiles of earlier versions have none: such a kernel then takes what a copy from a peer
   * takes for its bytes, and the signals what they cost elsewhere.
   */
  readonly reductionsInPeers?: readonly Timing[];
  /** Copies within a rank, and over the link of two ranks by a copy engine and by a kernel. */
  readonly localCopies: readonly Timing[];
  readonly peerCopies: readonly Timing[];
  readonly kernelCopies: readonly Timing[];
  /** At least one. */
  readonly transfers: readonly TransferTimings[];
  readonly costs: FixedCosts;
}

/** How long one thing of so many bytes took, from the end of what is before it on the stream to its own. */
export interface Timing {
  readonly bytes: number;
  readonly microseconds: number;
}

/**
 * Of a `reduction` over a leading axis, or of a `combine` of as many parts, both of one dtype: by the bytes that it reads and writes. How many
 * slots there are shows in the bytes alone.
 */
export interface ReductionTimings {
  readonly kernel: ReductionTimed;
  readonly dtype: DType;
  readonly timings: readonly Timing[];
}

export const reductionsTimed = ["reduction", "combine"] as const;
export type ReductionTimed = (typeof reductionsTimed)[number];

/**
 * Rates of products [m, k] by [k, n] in 1e12 floating-point operations a second, at every point of a grid: `teraflops` has them in
 * row-major order of m, n, k. Each axis is ascending.
 */
export interface GemmGrid {
  readonly dtype: DType;
  readonly m: readonly number[];
  readonly n: readonly number[];
  readonly k: readonly number[];
  readonly teraflops: readonly number[];
}

/** Of products [m, k] by [k, n] at every point of a grid, in row-major order of m, n, k. Axes ascend. */
export interface MarginGrid {
  readonly m: readonly number[];
  readonly n: readonly number[];
  readonly k: readonly number[];
  /**
   * How many times as long one takes with a margin of `measuredMargin`: a device computes a result in tiles, as many at once as it has multiprocessors, so
   * it depends on the extents. At least 1.
   */
  readonly factors: readonly number[];
  /** What part of a kernel in peers' memory ran beside one without a margin, from 0 to 1: the library's kernels for some extents leave it room, for others none. */
  readonly room: readonly number[];
}

/**
 * A run with so much time in products: how many times as long each of them takes as in the shortest run. A device that is limited by its power lowers its
 * clock under load. Ascending, both.
 */
export interface Sustained {
  readonly microseconds: number;
  readonly factor: number;
}

/** Of a collective by the greater of a rank's two sides, of a group (sends and receives) by what a rank sends or receives. */
export interface TransferTimings {
  readonly type: CollectiveType | "group";
  readonly ranks: number;
  readonly timings: readonly Timing[];
}

export interface FixedCosts {
  /** Of a run with nothing in it. */
  readonly run: number;
  /** Of every kernel's time, what passes before it occupies the device: kernels of other streams can run meanwhile. */
  readonly launch: number;
  /** From an event on one stream to what waits for it on another. */
  readonly event: number;
  /**
   * What passes before a kernel begins that has waited for another stream or a peer, however long ago that was done: kernels of other streams
   * can run meanwhile. Profiles of earlier versions have 0.
   */
  readonly join: number;
  /** From what is before a signal to what waits for it on a peer. */
  readonly signal: number;
  /** What the host takes to issue a command, where a run is not a graph. */
  readonly issue: number;
  /** How many times as long a product and a transfer take beside each other: the library's kernels share the device. At least 1. */
  readonly underTransfer: number;
}

/** As many multiprocessors as a kernel in peers' memory has blocks: a product that leaves so many gives it room. */
export const measuredMargin = 8;

/** About what is lost of 132 multiprocessors with 8. */
export const usualMarginFactor = 1.04;
