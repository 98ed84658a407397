/**
 * A Fusion as immutable data, which passes read and return. The class `Fusion` (api/fusion.ts) builds it.
 * Ops are in topological order. The counters hold the next free printed numbers.
 */
import type { Derivation } from "./derivation.ts";
import type { Tensor, TensorId } from "./domain.ts";
import type { Marker } from "./marker.ts";
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
  /** Which ops compositions made; only `gradients` reads it. Absent if there are none. */
  readonly markers?: readonly Marker[];
  /** What `gradients` added; only checks read it. Absent if nothing was differentiated. */
  readonly derivations?: readonly Derivation[];
}

/** The ops that read each tensor, in order. */
export function readersOf({ ops }: FusionData): ReadonlyMap<TensorId, readonly Op[]> {
  const readers = new Map<TensorId, Op[]>();
  for (const op of ops) {
    for (const id of new Set(op.inputs)) {
      const known = readers.get(id);
      if (known === undefined) readers.set(id, [op]);
      else known.push(op);
    }
  }
  return readers;
}

/** The tensors that one op reads once, and nothing else, not even an output. */
export function readOnceOf({ ops, outputs }: FusionData): ReadonlySet<TensorId> {
  const reads = new Map<TensorId, number>(outputs.map((id) => [id, 2]));
  for (const { inputs } of ops) for (const id of inputs) reads.set(id, (reads.get(id) ?? 0) + 1);
  return new Set([...reads].flatMap(([id, count]) => (count === 1 ? [id] : [])));
}
