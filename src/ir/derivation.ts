/**
 * The calls of `gradients` that a Fusion has the results of. `run --check` compares these with slopes of the Fusion,
 * which it finds without the rules of `gradients`; nothing else reads them.
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
  /** What the Fusion was cut from, if it has only the backward pass. */
  readonly whole?: { readonly ops: readonly Op[]; readonly inputs: readonly TensorId[] };
}
