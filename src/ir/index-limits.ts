/** Which inputs are indices, and of how long an axis: random indices below that read what a program reads. */
import type { TensorId } from "./domain.ts";
import { withoutReductions } from "./domain.ts";
import type { FusionData } from "./fusion-data.ts";
import type { Op } from "./ops/op.ts";
import { rowOf } from "./ops/rows.ts";
import { evaluateExtent, type Sizes } from "./sizes.ts";
import { at } from "../support/invariant.ts";

/** By position among the inputs: the shortest extent that the input indexes, itself or through views and casts. */
export function indexLimits({ tensors, ops, inputs }: FusionData, sizes: Sizes): ReadonlyMap<number, number> {
  const limits = new Map<TensorId, number>();
  const limit = (id: TensorId, extent: number): void => {
    limits.set(id, Math.min(extent, limits.get(id) ?? Infinity));
  };
  for (const op of ops.toReversed()) {
    const own = limits.get(op.output);
    const isMoved = op.kind === "Cast" || rowOf(op).isView;
    if (own !== undefined && isMoved) limit(at(op.inputs, 0), own);
    if (!readsIndices(op)) continue;
    const { extent } = at(withoutReductions(at(tensors, at(op.inputs, 0)).domain.logical), op.axis);
    limit(at(op.inputs, 1), evaluateExtent(extent, sizes));
  }
  return new Map(
    inputs.flatMap((id, i): readonly [number, number][] => {
      const own = limits.get(id);
      return own === undefined ? [] : [[i, own]];
    }),
  );
}

/** Whether the op's second operand has indices along its axis of the first. */
export function readsIndices(op: Op): op is Extract<Op, { readonly kind: "IndexSelect" | "Gather" | "ScatterAdd" }> {
  return op.kind === "IndexSelect" || op.kind === "Gather" || op.kind === "ScatterAdd";
}
