/** The rows of views that keep every element: copies, reordered axes, and axes of extent 1. */
import { at } from "../../../../support/invariant.ts";
import { type AxisShape, isUnitAxis, type IterDomain, type Tensor, withoutReductions } from "../../../domain.ts";
import { extentsDiffer } from "../../../scalar/fold.ts";
import { constant, printScalar, type Scalar } from "../../../scalar/scalar.ts";
import { type Call, rankOf, reject, requireExtent, resolveAxes, shapeText } from "../../call.ts";
import type { OpBase, OpRow, SpecOf } from "../../row.ts";
import { axisView, sourcesWithout } from "../families.ts";

// A copy. The input and output may be sharded differently.

export interface SetOp extends OpBase {
  readonly kind: "Set";
  /** Whether every device has all of what it gets, so that nothing is sent although the shardings differ. */
  readonly local?: true;
}

export const setRow: OpRow<SetOp> = {
  ...axisView<SetOp>((_, rank) => sourcesWithout([], rank, 0)),
  standalone: true,
  shape: (_, operands) => ({ axes: withoutReductions(at(operands, 0).domain.logical) }),
  respec: (op) => op,
};

// Reorders axes.

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
    reject(place, "bad-argument", "the order of a permute does not name every axis", {
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

// Stretches axes of extent 1: every index reads the one element. In memory such an axis has stride 0.

export interface ExpandOp extends OpBase {
  readonly kind: "Expand";
}

/** `shape` has an extent for every axis; -1 keeps the axis. Throws `bad-argument`, `bad-extent`, `shape-mismatch`. */
export function expandSpec(tensor: Tensor, shape: readonly (number | Scalar)[], place: Call): SpecOf<ExpandOp> {
  const axes = withoutReductions(tensor.domain.logical);
  if (shape.length !== axes.length) {
    reject(place, "bad-argument", "expand needs an extent for every axis", {
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
  return reject(place, "shape-mismatch", `expand stretches axis ${axis}, whose extent is not 1`, {
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

// Removes axes of extent 1.

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
    reject(place, "shape-mismatch", `squeeze removes axis ${axis}, whose extent is not known to be 1`, {
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

export interface BroadcastOp extends OpBase {
  readonly kind: "Broadcast";
  /** Whether axis i of the output is new. The other axes are the operand's, in order. */
  readonly flags: readonly boolean[];
}

/** Throws `bad-argument`. */
export function broadcastSpec(tensor: Tensor, flags: readonly boolean[], place: Call): SpecOf<BroadcastOp> {
  const kept = flags.filter((flag) => !flag).length;
  const rank = rankOf(tensor);
  if (kept !== rank) {
    reject(place, "bad-argument", "a broadcast has the wrong number of false flags", {
      found: `${kept} false flag${kept === 1 ? "" : "s"} for ${shapeText(tensor)}`,
      expected: `${rank} false flag${rank === 1 ? "" : "s"}, one per axis of the tensor, and true for each new axis`,
      help: "give one flag per axis of the output",
    });
  }
  return { kind: "Broadcast", flags: [...flags] };
}

export const broadcastRow: OpRow<BroadcastOp> = {
  ...axisView<BroadcastOp>(({ flags }) => flags.flatMap((flag, axis) => (flag ? [] : [{ axis, offset: 0 }]))),
  standalone: false,
  shape: ({ flags }, operands) => {
    const own = withoutReductions(at(operands, 0).domain.logical).values();
    const axes = flags.flatMap((flag): readonly AxisShape[] => {
      if (flag) return [{ extent: constant(1), iterType: "broadcast" }];
      const next = own.next();
      return next.done === true ? [] : [next.value];
    });
    return { axes };
  },
  respec: ({ flags }, operands, _, place) => broadcastSpec(at(operands, 0), flags, place),
};
