/** Removes axes of extent 1. */
import { at } from "../../../support/invariant.ts";
import { isUnitAxis, type Tensor, withoutReductions } from "../../domain.ts";
import { printScalar } from "../../scalar/print.ts";
import { zip } from "../axis-pairs.ts";
import { type Call, reject, resolveAxes } from "../call.ts";
import type { OpBase, OpRow, SpecOf } from "../row.ts";
import { view } from "./families.ts";

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
  ...view,
  standalone: false,
  shape: ({ axes }, operands) => ({ axes: kept(axes, withoutReductions(at(operands, 0).domain.logical)) }),
  respec: ({ axes }, operands, _, place) => squeezeSpec(at(operands, 0), axes, place),
  pairs: ({ axes }, operands, output) => zip(0, kept(axes, at(operands, 0)), withoutReductions(output)),
};

function kept<A>(squeezed: readonly number[], axes: readonly A[]): readonly A[] {
  return axes.filter((_, i) => !squeezed.includes(i));
}
