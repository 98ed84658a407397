/**
 * What a timeline draws, as plain data in columns: it can be posted between threads, and millions of slices need no
 * objects. `mountTimeline` in src/report/page shows it.
 */

/** What a slice is, for its colour. "wait": its stream is blocked. "order", "mark": commands that take no time. */
export type SliceKind = "gemm" | "kernel" | "copy" | "transfer" | "localCopy" | "wait" | "order" | "mark";

export interface TimelineData {
  /** "milliseconds", or "steps" where only the order of commands is known. */
  readonly unit: TimeUnit;
  readonly ranks: readonly TimelineRank[];
  /** Predicted and measured, for example: the tracks of one are above those of the next. */
  readonly runs: readonly TimelineRun[];
  /** What slices are; many slices share a row. */
  readonly works: readonly SliceWork[];
  /** What works are issued by. */
  readonly statements: readonly ReportStatement[];
  /** The values of the loops around a command: `3`, `3, 1`; the first is empty. */
  readonly iterations: readonly string[];
}

export type TimeUnit = "milliseconds" | "steps";

export interface TimelineRank {
  readonly rank: number;
  /** In the order of the tracks. */
  readonly streams: readonly { readonly id: number; readonly name: string }[];
}

export interface SliceWork {
  readonly kind: SliceKind;
  /** Short, for inside the slice: `matmul`, `from rank 1`. */
  readonly label: string;
  /** All operands, in one line. */
  readonly details: string;
  /** An index into `statements`. */
  readonly statement: number;
  /** Bytes read, written or moved; null for what only orders streams. */
  readonly bytes: number | null;
  /** Floating-point operations; 0 for what computes nothing. */
  readonly flops: number;
}

export interface ReportStatement {
  /** In one line, tensors by name. */
  readonly text: string;
  /** The region of `explain` that it belongs to: the position of its outermost statement in the body. */
  readonly region: number;
  /** An index into the texts of host programs, and the line in it, from 1; null if unknown. */
  readonly host: number;
  readonly line: number | null;
}

export interface TimelineRun {
  /** `predicted`, `measured`, `as written`. */
  readonly name: string;
  /** In the unit of the timeline. */
  readonly end: number;
  readonly tracks: readonly Track[];
  readonly slices: SliceColumns;
  /** Indices of the slices of the critical path, in order of time. */
  readonly critical: Int32Array;
  /** Time of ranks in which no kernel of them runs, by cause: rank after rank, in order of time. */
  readonly idle: readonly IdleSpan[];
  /** Pairs of slices whose order the program lacks: the first should come before the second. */
  readonly missing: readonly (readonly [number, number])[];
  readonly memory: readonly MemoryCurve[];
}

/** The slices of a stream: `count` from `first`, in order of time. They do not overlap. */
export interface Track {
  readonly rank: number;
  readonly stream: number;
  readonly first: number;
  readonly count: number;
}

/** Why one command stands before another that waited for it. */
export const orderReasons = [
  /** The later one reads what the earlier one, or one before it on its stream, writes. */
  "data",
  /** The later one writes where the earlier one reads or writes, maybe in another buffer at the same place. */
  "memory reuse",
  /** Both take part in one transfer, and the other arrived last. */
  "peer",
  "communicator",
  "stream",
  /** Nothing that they have in common: one that the program orders. */
  "event or signal",
] as const;
export type OrderReason = (typeof orderReasons)[number];

/** One row per slice. */
export interface SliceColumns {
  readonly start: Float64Array;
  readonly duration: Float64Array;
  /** The position in its rank's command list. */
  readonly command: Int32Array;
  /** An index into `works`. */
  readonly work: Int32Array;
  /** An index into `iterations`. */
  readonly iteration: Int32Array;
  /** What slice i waited for: slices `edges[k]` for k from `edgeStart[i]` to before `edgeStart[i + 1]`. */
  readonly edgeStart: Int32Array;
  readonly edges: Int32Array;
  /** By edge: an index into `orderReasons`. */
  readonly reasons: Int32Array;
}

export interface IdleSpan {
  readonly rank: number;
  /** A key of `causes`. */
  readonly cause: string;
  readonly label: string;
  readonly start: number;
  readonly end: number;
  /** The slice that the rank waited for; -1 for the host. */
  readonly slice: number;
}

/** Bytes in use on a device: from `time[i]` on, `bytes[i]`. */
export interface MemoryCurve {
  readonly rank: number;
  readonly time: Float64Array;
  readonly bytes: Float64Array;
  /** The most of `bytes`. */
  readonly peak: number;
  /** Inputs and outputs, which are in use all the time; `bytes` includes them. */
  readonly resident: number;
  /** What all arenas of the rank take. */
  readonly reserved: number;
}

/** A slice of a run of a timeline. */
export interface SliceRef {
  readonly run: number;
  readonly slice: number;
}
