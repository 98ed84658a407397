/** What tensors hold where that is not what they declare: chunks, and what comes from them (actual.ts, views.ts). */
import type { Runs } from "../ir/runs.ts";
import type { DeviceMesh } from "../ir/device-mesh.ts";
import type { DIDType, TensorId } from "../ir/domain.ts";

/** What a tensor holds, one entry per axis that exists at run time. */
export interface Actual {
  /** Over all devices. */
  readonly extents: readonly number[];
  /** On this rank. */
  readonly local: readonly number[];
  /** Whether one of them is not the declared size. */
  readonly differs: boolean;
  /** For chunks of an axis, the indices of the declared axis that exist for a rank; for others those below the extent. */
  readonly exists: ReadonlyMap<number, (rank: number) => Runs>;
  /** The chunk that the tensor is bound to; null if it only comes from one. */
  readonly chunk: Chunk | null;
}

/** Which chunk of an axis: number `indexOn(rank)` of `parts`. */
export interface ChunkNumber {
  readonly axis: number;
  readonly parts: number;
  readonly indexOn: (rank: number) => number;
  /** Whether all ranks have the chunk of the same number. */
  readonly isSameOnAll: boolean;
}

/** A chunk of an axis of the tensor `of`, as that was at that time. Runs are indices of the axis of `of`. */
export interface Chunk extends ChunkNumber {
  readonly of: TensorId;
  /** What a rank holds of the axis, and of the chunk. */
  readonly share: (rank: number) => Runs;
  readonly runs: (rank: number) => Runs;
  /** The chunk of a rank's block: of the whole axis if no DID type is outermost on it. */
  readonly inBlock: (rank: number) => Runs;
  /** The indices of the chunk tensor's axis that exist for a rank. */
  readonly exists: (rank: number) => Runs;
}

/** How the elements of a communication with unequal slices move: statements/exchange-plan.ts. */
export interface ExchangePlan {
  readonly pairs: readonly ActualAxisPair[];
}

/** An axis of the input and its counterpart in the output, and which of their indices each rank holds. */
export interface ActualAxisPair {
  readonly input: number;
  readonly output: number;
  readonly on: { readonly [S in "input" | "output"]: (rank: number) => Runs };
  /** How one DID type cuts the axis on each side; null if none does, or several do. */
  readonly cut: { readonly [S in "input" | "output"]: AxisCut | null };
}

/** An axis that one DID type cuts into shares without common indices. */
export interface AxisCut {
  readonly mesh: DeviceMesh;
  readonly type: DIDType;
  /** The coordinates of the devices whose shares have some of the indices, ascending. */
  readonly coordinatesOf: (runs: Runs) => readonly number[];
}
