/** Stretches axes of extent 1: every index reads the one element. In memory such an axis has stride 0. */
import { at } from "../../../../support/invariant.ts";
import { type AxisShape, isUnitAxis, type IterDomain, type Tensor, withoutReductions } from "../../../domain.ts";
import { extentsDiffer } from "../../../scalar/fold.ts";
import { printScalar } from "../../../scalar/print.ts";
import { constant, type Scalar } from "../../../scalar/scalar.ts";
import { type Call, reject, requireExtent, shapeText } from "../../call.ts";
import type { OpBase, OpRow, SpecOf } from "../../row.ts";
import { axisView, sourcesWithout } from "../families.ts";

export interface ExpandOp extends OpBase {
  readonly kind: "Expand";
}

/** `shape` has an extent for every axis; -1 keeps the axis. Throws `bad-argument`, `bad-extent`, `shape-mismatch`. */
export function expandSpec(tensor: Tensor, shape: readonly (number | Scalar)[], place: Call): SpecOf<ExpandOp> {
  const axes = withoutReductions(tensor.domain.logical);
  if (shape.length !== axes.length) {
    reject(place, {
      code: "bad-argument",
      message: "expand needs an extent for every axis",
      found: `${shape.length} extents for ${shapeText(tensor)}`,
      expected: `${axes.length} extents`,
      help: "give -1 to keep an axis; unsqueeze() adds axes",
    });
  }
  const extents = axes.map((axis, i) => {
    const entry = at(shape, i);
    if (entry === -1) return axis.extent;
    const extent = typeof entry === "object" ? entry : constant(requireExtent(entry, place));
    return isUnitAxis(axis) || !extentsDiffer(axis.extent, extent) ? extent : rejectExtent(tensor, i, extent, place);
  });
  return { kind: "Expand", extents };
}

function rejectExtent(tensor: Tensor, axis: number, extent: Scalar, place: Call): never {
  return reject(place, {
    code: "shape-mismatch",
    message: `expand stretches axis ${axis}, whose extent is not 1`,
    found: `extent ${printScalar(extent)} for ${shapeText(tensor)}`,
    expected: "an axis of extent 1, or its own extent",
    help: "give -1 to keep the axis; repeatInterleave() repeats the elements of an axis",
  });
}

export const expandRow: OpRow<ExpandOp> = {
  ...axisView<ExpandOp>((_, rank) => sourcesWithout([], rank, 0)),
  standalone: false,
  shape: ({ extents }, operands) => ({
    axes: withoutReductions(at(operands, 0).domain.logical).map((axis, i) => expandedAxis(axis, at(extents, i))),
  }),
  respec: (_, operands, output, place) => {
    const extents = withoutReductions(output.domain.logical).map(({ extent }) => extent);
    return expandSpec(at(operands, 0), extents, place);
  },
};

/** A constant extent takes precedence over a symbol, as in binary ops. */
function expandedAxis(axis: IterDomain, extent: Scalar): AxisShape {
  if (!isUnitAxis(axis)) return axis.extent.kind === "constant" ? axis : { extent, iterType: axis.iterType };
  return isUnitAxis({ extent, iterType: "iteration" }) ? axis : { extent, iterType: "iteration" };
}
