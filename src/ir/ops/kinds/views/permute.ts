/** Reorders axes. */
import { at } from "../../../../support/invariant.ts";
import { type Tensor, withoutReductions } from "../../../domain.ts";
import { type Call, rankOf, reject, resolveAxes } from "../../call.ts";
import type { OpBase, OpRow, SpecOf } from "../../row.ts";
import { axisView } from "../families.ts";

export interface PermuteOp extends OpBase {
  readonly kind: "Permute";
  /** Axis i of the output is axis `order[i]` of the operand. */
  readonly order: readonly number[];
}

/** Throws `axis-out-of-range`, `axis-repeated`, `bad-argument`. */
export function permuteSpec(tensor: Tensor, order: readonly number[], place: Call): SpecOf<PermuteOp> {
  const rank = rankOf(tensor);
  const resolved = resolveAxes(order, rank, place);
  if (resolved.length !== rank) {
    reject(place, {
      code: "bad-argument",
      message: "the order of a permute does not name every axis",
      found: `${resolved.length} of ${rank} axes`,
      expected: "every axis of the tensor exactly once",
      help: "list all axes in their new order",
    });
  }
  return { kind: "Permute", order: resolved };
}

export const permuteRow: OpRow<PermuteOp> = {
  ...axisView<PermuteOp>(({ order }) => order.map((_, i) => ({ axis: order.indexOf(i), offset: 0 }))),
  standalone: false,
  shape: ({ order }, operands) => {
    const input = withoutReductions(at(operands, 0).domain.logical);
    // nvFuser creates the axes in the input's order and then reorders them, which decides their numbers.
    return { axes: order.map((axis) => at(input, axis)), numbering: order };
  },
  respec: ({ order }, operands, _, place) => permuteSpec(at(operands, 0), order, place),
};
