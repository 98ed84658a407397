/** Removes axes of extent 1. */
import { at } from "../../../../support/invariant.ts";
import { isUnitAxis, type Tensor, withoutReductions } from "../../../domain.ts";
import { printScalar } from "../../../scalar/print.ts";
import { type Call, reject, resolveAxes } from "../../call.ts";
import type { OpBase, OpRow, SpecOf } from "../../row.ts";
import { axisView, sourcesWithout } from "../families.ts";

export interface SqueezeOp extends OpBase {
  readonly kind: "Squeeze";
  readonly axes: readonly number[];
}

/** Throws `axis-out-of-range`, `axis-repeated`, `shape-mismatch`. */
export function squeezeSpec(tensor: Tensor, axes: readonly number[], place: Call): SpecOf<SqueezeOp> {
  const domain = withoutReductions(tensor.domain.logical);
  const resolved = resolveAxes(axes, domain.length, place);
  for (const axis of resolved) {
    const { extent } = at(domain, axis);
    if (isUnitAxis(at(domain, axis))) continue;
    reject(place, {
      code: "shape-mismatch",
      message: `squeeze removes axis ${axis}, whose extent is not known to be 1`,
      found: `extent ${printScalar(extent)}`,
      expected: "extent 1",
      help: "squeeze only axes of extent 1; use sum() or select() for others",
    });
  }
  return { kind: "Squeeze", axes: resolved };
}

export const squeezeRow: OpRow<SqueezeOp> = {
  ...axisView<SqueezeOp>(({ axes }, rank) => sourcesWithout(axes, rank, 0)),
  standalone: false,
  shape: ({ axes }, operands) => ({
    axes: withoutReductions(at(operands, 0).domain.logical).filter((_, i) => !axes.includes(i)),
  }),
  respec: ({ axes }, operands, _, place) => squeezeSpec(at(operands, 0), axes, place),
};
