/** The rows of views that keep every element: copies, reordered axes, and axes of extent 1. */
import { at } from "../../../../support/invariant.ts";
import { type AxisShape, isUnitAxis, type IterDomain, type Tensor, withoutReductions } from "../../../domain.ts";
import { extentsDiffer, constantValue, foldDiv, foldProduct, sameScalar } from "../../../scalar/fold.ts";
import { constant, printScalar, type Scalar } from "../../../scalar/scalar.ts";
import { type Call, rankOf, reject, requireExtent, resolveAxes, shapeText } from "../../call.ts";
import type { OpBase, OpRow, SpecOf, Axes, AxisPair } from "../../row.ts";
import { axisView, sourcesWithout, pair, view, zip } from "../families.ts";
import { elementCount } from "../../../../numerics/tensor/host-tensor.ts";

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

/* The same elements in row-major order under the output's shape. */

export interface ReshapeOp extends OpBase {
  readonly kind: "Reshape";
}

/**
 * `shape` holds extents; one of them may be -1, which is inferred. Throws `bad-extent`, `bad-argument`,
 * `shape-mismatch`.
 */
export function reshapeSpec(tensor: Tensor, shape: readonly (number | Scalar)[], place: Call): SpecOf<ReshapeOp> {
  const total = foldProduct(withoutReductions(tensor.domain.logical).map((axis) => axis.extent));
  // With an extent of 0, any extent would do for -1.
  const least = shape.includes(-1) ? 1 : 0;
  const given = shape.flatMap((entry) => (entry === -1 ? [] : [toExtent(entry, place, least)]));
  if (shape.length - given.length > 1) {
    reject(place, "bad-argument", "a shape has more than one -1", {
      found: `${shape.length - given.length} times -1`,
      expected: "at most one -1",
      help: "write all extents but one",
    });
  }
  const product = foldProduct(given);
  const from = constantValue(total);
  const to = constantValue(product);
  const infers = given.length < shape.length;
  if (from !== null && to !== null && (infers ? from % to !== 0 : from !== to)) {
    reject(place, "shape-mismatch", "a reshape would change the number of elements", {
      found: `${from} elements in ${shapeText(tensor)}, ${infers ? `a multiple of ${to}` : to} in the new shape`,
      expected: "the same number of elements",
      help: "choose extents whose product is the tensor's number of elements",
    });
  }
  const rest = foldDiv(total, product);
  return { kind: "Reshape", extents: shape.map((entry) => (entry === -1 ? rest : toExtent(entry, place, least))) };
}

function toExtent(entry: number | Scalar, place: Call, least: 0 | 1): Scalar {
  return typeof entry === "object" ? entry : constant(requireExtent(entry, place, least));
}

export const reshapeRow: OpRow<ReshapeOp> = {
  ...view,
  standalone: false,
  shape: ({ extents }) => ({ axes: extents.map((extent) => ({ extent, iterType: "iteration" })) }),
  respec: (_, operands, output, place) => {
    const extents = withoutReductions(output.domain.logical).map(({ extent }) => extent);
    return reshapeSpec(at(operands, 0), extents, place);
  },
  pairs: (_, operands, output) => reshapePairs(at(operands, 0), withoutReductions(output)),
  misfit: (_, { input, output }) => {
    // An inferred extent rounds down, so an uneven division also shows as a different number of elements.
    const to = output();
    if (elementCount(input) === elementCount(to)) return null;
    return {
      code: "size-mismatch",
      message: "a reshape would change the number of elements",
      found: `[${input.join(", ")}] to [${to.join(", ")}]`,
      expected: "the same number of elements",
      help: "pass inputs whose sizes the reshape divides evenly",
    };
  },
};

/**
 * Leading and trailing axes of equal extent keep their row-major index. Between them, the outermost axes of each group
 * of axes that holds as many elements on both sides are a pair of which the outer parts agree:
 *
 *   [T, N] -> [T, heads, d]     T with T; N with heads, outermost
 */
function reshapePairs(input: Axes, output: Axes): readonly AxisPair[] {
  const shorter = Math.min(input.length, output.length);
  const same = (a: IterDomain | undefined, b: IterDomain | undefined): boolean =>
    a !== undefined && b !== undefined && sameScalar(a.extent, b.extent);
  let leading = 0;
  while (leading < shorter && same(input[leading], output[leading])) leading++;
  let trailing = 0;
  while (trailing < shorter - leading && same(input.at(-1 - trailing), output.at(-1 - trailing))) trailing++;
  const pairs = [
    ...zip(0, input.slice(0, leading), output),
    ...outermostPairs(input.slice(leading, input.length - trailing), output.slice(leading, output.length - trailing)),
    ...zip(0, input.slice(input.length - trailing), output.slice(output.length - trailing)),
  ];
  // A reshape stretches no axis: a broadcast axis of the operand has one element, also in the output.
  return pairs.map((each) => ({ ...each, broadcast: false }));
}

/** The first axes of more than one element of each group. Extents that are not known make one group of all axes. */
function outermostPairs(input: Axes, output: Axes): readonly AxisPair[] {
  const [from, to] = [input, output].map((axes) => axes.filter((axis) => !isUnitAxis(axis)));
  const pairs: AxisPair[] = [];
  let rest: readonly [Axes, Axes] = [from ?? [], to ?? []];
  for (;;) {
    const [[producer], [consumer]] = rest;
    if (producer === undefined || consumer === undefined) return pairs;
    pairs.push({ ...pair(0, producer, consumer), outermost: !sameScalar(producer.extent, consumer.extent) });
    rest = withoutFirstGroup(rest);
  }
}

/** The axes behind the shortest leading ones with as many elements on both sides. */
function withoutFirstGroup([input, output]: readonly [Axes, Axes]): readonly [Axes, Axes] {
  let [from, to, taken, made] = [1, 1, 0, 0];
  do {
    const next = from <= to ? input[taken++] : output[made++];
    const size = next === undefined ? null : constantValue(next.extent);
    if (size === null) return [[], []];
    if (from <= to) from *= size;
    else to *= size;
  } while (from !== to);
  return [input.slice(taken), output.slice(made)];
}
