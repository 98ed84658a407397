/**
 * A Fusion as immutable data: what passes read and write. `Fusion` (fusion.ts) builds it through its API.
 * Ops stand in topological order. The counters say which printed numbers are taken.
 */
import type { Tensor, TensorId } from "./domain.ts";
import type { Op } from "./ops/op.ts";

export interface FusionData {
  readonly kind: "Fusion";
  /** Indexed by TensorId. */
  readonly tensors: readonly Tensor[];
  readonly ops: readonly Op[];
  readonly inputs: readonly TensorId[];
  readonly outputs: readonly TensorId[];
  /** The next IterDomainId. */
  readonly iterDomainCount: number;
  /** The next number of a scalar `i<n>`. */
  readonly scalarCount: number;
}
