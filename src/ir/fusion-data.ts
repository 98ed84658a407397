/**
 * A Fusion as immutable data, which passes read and return. The class `Fusion` (api/fusion.ts) builds it.
 * Ops are in topological order. The counters hold the next free printed numbers.
 */
import type { Tensor, TensorId } from "./domain.ts";
import { type Op, outputsOf } from "./ops/op.ts";
import { pushTo } from "../support/invariant.ts";

export interface FusionData {
  readonly kind: "Fusion";
  /** Indexed by TensorId. */
  readonly tensors: readonly Tensor[];
  readonly ops: readonly Op[];
  readonly inputs: readonly TensorId[];
  readonly outputs: readonly TensorId[];
  /** Outputs in the buffers of inputs; absent if there are none. */
  readonly aliases?: readonly Alias[];
  /** The next IterDomainId. */
  readonly iterDomainCount: number;
  /** The next number of a scalar `i<n>`. */
  readonly scalarCount: number;
  /** A part of a Fusion whose tensors have their meshes and shardings: lowering does not place them again. */
  readonly isPlaced?: true;
  /** Which ops compositions made; only `gradients` reads it. Absent if there are none. */
  readonly markers?: readonly Marker[];
  /** What `gradients` added; only checks read it. Absent if nothing was differentiated. */
  readonly derivations?: readonly Derivation[];
}

/** State: the output is written over the input, so that the next run begins with it. */
export interface Alias {
  /** The position among the outputs. */
  readonly output: number;
  readonly input: TensorId;
}

/** The ops that read each tensor, in order. */
export function readersOf({ ops }: FusionData): ReadonlyMap<TensorId, readonly Op[]> {
  const readers = new Map<TensorId, Op[]>();
  for (const op of ops) {
    for (const id of new Set(op.inputs)) {
      pushTo(readers, id, op);
    }
  }
  return readers;
}

/** The same without ops that no output depends on. */
export function withoutDeadOps(fusion: FusionData): FusionData {
  const needed = new Set<TensorId>(fusion.outputs);
  const live: Op[] = [];
  for (const op of fusion.ops.toReversed()) {
    if (!outputsOf(op).some((id) => needed.has(id))) continue;
    for (const input of op.inputs) needed.add(input);
    live.push(op);
  }
  return live.length === fusion.ops.length ? fusion : { ...fusion, ops: live.reverse() };
}

/** The tensors that one op reads once, and nothing else, not even an output. */
export function readOnceOf({ ops, outputs }: FusionData): ReadonlySet<TensorId> {
  const reads = new Map<TensorId, number>(outputs.map((id) => [id, 2]));
  for (const { inputs } of ops) for (const id of inputs) reads.set(id, (reads.get(id) ?? 0) + 1);
  return new Set([...reads].flatMap(([id, count]) => (count === 1 ? [id] : [])));
}

// The calls of `gradients` that a Fusion has the results of. `run --check` compares these with slopes of the Fusion,
// which it finds without the rules of `gradients`. Lowering places cotangents like the tensors that they are cotangents
// of, by `uses` and `gradients`.

export interface Derivation {
  readonly of: readonly TensorId[];
  /** One per `of`, of its shape and dtype; null for 1, of a tensor without axes. */
  readonly cotangents: readonly (TensorId | null)[];
  readonly wrt: readonly TensorId[];
  /** One per `wrt`; null if no `of` depends on it. A partial one has one more axis in front, over which it is summed. */
  readonly gradients: readonly (TensorId | null)[];
  /** The ops of the Fusion when it was differentiated, also those that no output needs. */
  readonly ops: readonly Op[];
  /** In the order of the sweep: from results to operands. */
  readonly uses: readonly CotangentUse[];
  /** What the Fusion was cut from, if it has only the backward pass. */
  readonly whole?: { readonly ops: readonly Op[]; readonly inputs: readonly TensorId[] };
}

/** The ops that read a tensor as the cotangent of `primal`: one tensor may be the cotangent of several. */
export interface CotangentUse {
  readonly primal: TensorId;
  readonly cotangent: TensorId;
  /** The tensor whose cotangent this is too, as of a sum of which `primal` is a term. */
  readonly passedFrom: TensorId | null;
  /** The ops that make the tensors from `from` up to `to`. */
  readonly readers: { readonly from: number; readonly to: number };
}

// Which ops a composition of the API made. `gradients` uses the composition's closed form instead of the rules of its
// ops, and slopes of the oracle the corners of `clamp`. Passes that change ops may leave stale markers.

/** The operands of each composition. A call may leave out those with a question mark. */
interface MarkerOperands {
  readonly argmax: { x: unknown };
  readonly detach: { x: unknown };
  /** An extreme along an axis, whose gradient goes to the element at the kept index. */
  readonly extreme: { x: unknown };
  /** Rows of a table, of which the one at `padding` has no gradient. */
  readonly paddedRows: { table: unknown; index: unknown };
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
  readonly float8Linear: { x: unknown; weight: unknown };
}

export type Float8Recipe = "rowwise" | "tensorwise" | "blockwise";
export const float8Recipes: readonly Float8Recipe[] = ["rowwise", "tensorwise", "blockwise"];

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
  /** The index of the row that has no gradient. */
  readonly padding?: number;
  /** The probability and the counter of a dropout. */
  readonly random?: { readonly p: number; readonly offset: number };
  /** What a rope rotates together. */
  readonly pairs?: "halves" | "neighbours";
  /** What one scale of a linear of 8-bit floats is of. */
  readonly recipe?: Float8Recipe;
  /** How many parts of the cotangent's rows have a scale each; 1 if absent. */
  readonly parts?: number;
}

/** A union over the names. */
export type Marker<K extends MarkerName = MarkerName> = { readonly [N in K]: MarkerOf<N> }[K];
