/**
 * Which ops a composition of the API made. `gradients` uses the composition's closed form instead of the rules of its
 * ops, and slopes of the oracle the corners of `clamp`. Passes that change ops may leave stale markers.
 */
import type { TensorId } from "./domain.ts";

/** The operands of each composition. A call may leave out those with a question mark. */
interface MarkerOperands {
  readonly argmax: { x: unknown };
  readonly clamp: { x: unknown; low?: unknown; high?: unknown };
  readonly varMean: { x: unknown };
  readonly softmax: { x: unknown };
  readonly logSoftmax: { x: unknown };
  readonly logsumexp: { x: unknown };
  readonly crossEntropy: { logits: unknown; target: unknown };
  readonly layerNorm: { x: unknown; weight?: unknown; bias?: unknown };
  readonly rmsNorm: { x: unknown; weight?: unknown };
  readonly rope: { x: unknown; cos: unknown; sin: unknown };
  readonly swiglu: { gate: unknown; up: unknown };
  readonly dropout: { x: unknown; seed: unknown };
}

export type MarkerName = keyof MarkerOperands;

/** One `T` for each operand that a call of the composition has. */
export type OperandsOf<K extends MarkerName, T> = { readonly [N in keyof MarkerOperands[K]]: T };

interface MarkerOf<K extends MarkerName> {
  readonly name: K;
  readonly operands: OperandsOf<K, TensorId>;
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

/** A union over the names. */
export type Marker<K extends MarkerName = MarkerName> = { readonly [N in K]: MarkerOf<N> }[K];
