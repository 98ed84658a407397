/**
 * The calls of `gradients` that a Fusion has the results of. `run --check` compares these with slopes of the Fusion,
 * which it finds without the rules of `gradients`. Lowering places cotangents like the tensors that they are cotangents
 * of, by `uses` and `gradients`.
 */
import type { TensorId } from "./domain.ts";
import type { Op } from "./ops/op.ts";

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
