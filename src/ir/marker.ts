/**
 * Which ops a composition of the API made. `gradients` uses the composition's closed form instead of the rules of its
 * ops. Nothing else reads markers; passes that change ops may leave stale ones.
 */
import type { TensorId } from "./domain.ts";

export type MarkerName =
  | "argmax"
  | "varMean"
  | "softmax"
  | "logSoftmax"
  | "logsumexp"
  | "crossEntropy"
  | "layerNorm"
  | "rmsNorm"
  | "rope"
  | "swiglu"
  | "dropout";

export interface Marker {
  readonly name: MarkerName;
  readonly inputs: readonly TensorId[];
  readonly outputs: readonly TensorId[];
  /** Tensors between that the closed form reads. */
  readonly kept: readonly TensorId[];
  /** The axes that the composition reduces or cuts. */
  readonly axes: readonly number[];
  /** What a variance subtracts from the number of elements. */
  readonly correction?: number;
  /** The probability and the counter of a dropout. */
  readonly random?: { readonly p: number; readonly offset: number };
}
