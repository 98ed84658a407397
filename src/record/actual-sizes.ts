/** What tensors hold where that is not what they declare: chunks, and what comes from them (actual.ts, chunks.ts). */
import type { Runs } from "../ir/axis-runs.ts";
import type { TensorId } from "../ir/domain.ts";

/** What a tensor holds, one entry per axis that exists at run time. */
export interface Actual {
  /** Over all devices. */
  readonly extents: readonly number[];
  /** On this rank. */
  readonly local: readonly number[];
  /** Whether one of them is not the declared size. */
  readonly differs: boolean;
  /** The chunk that the tensor is bound to; null if it only comes from one. */
  readonly chunk: Chunk | null;
}

/** Chunk number `indexOn(rank)` of `parts` of an axis of the tensor `of`. */
export interface Chunk {
  readonly of: TensorId;
  /** The extent of the axis that `of` had at that time. */
  readonly extent: number;
  readonly axis: number;
  readonly parts: number;
  readonly indexOn: (rank: number) => number;
}

/** How the elements of a communication with unequal slices move: statements/exchange-plan.ts. */
export interface ExchangePlan {
  readonly pairs: readonly AxisPair[];
}

/** An axis of the input and its counterpart in the output, and which of their indices each rank holds. */
export interface AxisPair {
  readonly input: number;
  readonly output: number;
  readonly on: { readonly [S in "input" | "output"]: (rank: number) => Runs };
}
