/** Ops of a Fusion in place of others. */
import type { FusionBuilder } from "../../ir/api/fusion-builder.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import type { TensorId } from "../../ir/domain.ts";
import { type Op, renamedOp } from "../../ir/ops/op.ts";

/** Runs a function whose tensors come from where this one does. */
export type MadeFor = (id: TensorId, make: () => void) => void;

/**
 * Leaves `ops` in the builder, of which those in `makers` become what makes their result. `names` gets the new tensors by
 * the old ones while they are made.
 */
export function replaceOps(
  builder: FusionBuilder,
  ops: readonly Op[],
  makers: ReadonlyMap<Op, () => TensorView>,
  names: Map<TensorId, TensorId>,
  madeFor: MadeFor,
): void {
  if (makers.size === 0) return;
  builder.ops.length = 0;
  builder.snapshot = null;
  for (const op of ops) {
    const make = makers.get(op);
    if (make === undefined) builder.ops.push(renamedOp(op, (id) => names.get(id) ?? id));
    else {
      madeFor(op.output, () => {
        names.set(op.output, make().id);
      });
    }
  }
  builder.outputs.forEach((id, i) => {
    builder.outputs[i] = names.get(id) ?? id;
  });
}
