/** A range of indices along every axis. */
import { at } from "../../../support/invariant.ts";
import { type IterDomain, type Tensor, withoutReductions } from "../../domain.ts";
import { constantValue, isConstant } from "../../scalar/fold.ts";
import { printScalar } from "../../scalar/print.ts";
import { constant } from "../../scalar/scalar.ts";
import { axisView, zip } from "./families.ts";
import { type Call, reject, shapeText } from "../call.ts";
import type { OpBase, OpRow, SpecOf } from "../row.ts";

export interface SliceOp extends OpBase {
  readonly kind: "Slice";
  /** `[start, stop)` of every axis. */
  readonly ranges: readonly Range[];
}

interface Range {
  readonly start: number;
  readonly stop: number;
}

/** `[starts[i], stops[i])` of every axis i. Throws `index-out-of-range`, `bad-argument`. */
export function sliceSpec(
  tensor: Tensor,
  starts: readonly number[],
  stops: readonly number[],
  place: Call,
): SpecOf<SliceOp> {
  const domain = withoutReductions(tensor.domain.logical);
  if (starts.length !== domain.length || stops.length !== domain.length) {
    reject(place, {
      code: "bad-argument",
      message: "a slice needs a start and a stop for every axis",
      found: `${starts.length} starts and ${stops.length} stops for ${shapeText(tensor)}`,
      expected: `${domain.length} of each`,
      help: "give 0 and the extent to keep a whole axis",
    });
  }
  const ranges = domain.map(({ extent }, axis) => {
    const start = at(starts, axis);
    const stop = at(stops, axis);
    const limit = constantValue(extent) ?? Number.MAX_SAFE_INTEGER;
    if (Number.isSafeInteger(start) && Number.isSafeInteger(stop) && 0 <= start && start < stop && stop <= limit) {
      return { start, stop };
    }
    return reject(place, {
      code: "index-out-of-range",
      message: `a slice is not inside axis ${axis}`,
      found: `[${start}, ${stop}) of extent ${printScalar(extent)}`,
      expected: `whole numbers 0 <= start < stop <= ${printScalar(extent)}`,
      help: "choose a range of at least one index inside the axis",
    });
  });
  return { kind: "Slice", ranges };
}

export const sliceRow: OpRow<SliceOp> = {
  ...axisView<SliceOp>(({ ranges }) => ranges.map(({ start }, axis) => ({ axis, offset: start }))),
  standalone: true,
  shape: ({ ranges }, operands) => ({
    axes: withoutReductions(at(operands, 0).domain.logical).map(({ iterType }, i) => {
      const { start, stop } = at(ranges, i);
      return { extent: constant(stop - start), iterType };
    }),
  }),
  respec: ({ ranges }, operands, _, place) => {
    const starts = ranges.map(({ start }) => start);
    const stops = ranges.map(({ stop }) => stop);
    return sliceSpec(at(operands, 0), starts, stops, place);
  },
  pairs: ({ ranges }, operands, output) =>
    zip(0, at(operands, 0), withoutReductions(output)).filter(({ producer }, i) => isWhole(at(ranges, i), producer)),
  sliced: (op, [cut]) => ({ ...op, ranges: op.ranges.filter((_, axis) => axis !== cut) }),
  whole: ({ ranges }, operands) =>
    at(operands, 0).flatMap((axis, i) => (isWhole(at(ranges, i), axis) ? [] : [{ operand: 0, axis }])),
  misfit: ({ ranges }, { input }) => {
    const axis = ranges.findIndex(({ stop }, i) => stop > at(input, i));
    if (axis < 0) return null;
    const { start, stop } = at(ranges, axis);
    return indexMisfit("Slice", axis, `[${start}, ${stop})`, at(input, axis));
  },
};

/** Whether the range is known to cover the axis. */
function isWhole({ start, stop }: Range, axis: IterDomain): boolean {
  return start === 0 && isConstant(axis.extent, stop);
}

/** A diagnostic if an index or range is outside an axis of `size` elements, or null. */
export function indexMisfit(
  kind: string,
  axis: number,
  index: string,
  size: number,
): ReturnType<OpRow<SliceOp>["misfit"]> {
  return {
    code: "index-out-of-range",
    message: `${kind} reaches outside axis ${axis}`,
    found: `${index} of size ${size}`,
    expected: `an index below ${size}`,
    help: "pass a larger input, or change the index",
  };
}
