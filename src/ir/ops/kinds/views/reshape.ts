/** The same elements in row-major order under the output's shape. */
import { at } from "../../../../support/invariant.ts";
import { isUnitAxis, type IterDomain, type Tensor, withoutReductions } from "../../../domain.ts";
import { constantValue, foldDiv, foldProduct, sameScalar } from "../../../scalar/fold.ts";
import { constant, type Scalar } from "../../../scalar/scalar.ts";
import { pair, view, zip } from "../families.ts";
import { type Call, reject, requireExtent, shapeText } from "../../call.ts";
import type { Axes, AxisPair, OpBase, OpRow, SpecOf } from "../../row.ts";
import { elementCount } from "../../../../numerics/tensor/storage.ts";

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
  return [
    ...zip(0, input.slice(0, leading), output),
    ...outermostPairs(input.slice(leading, input.length - trailing), output.slice(leading, output.length - trailing)),
    ...zip(0, input.slice(input.length - trailing), output.slice(output.length - trailing)),
  ];
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
