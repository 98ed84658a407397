/** A range of indices along every axis. */
import { at } from "../../../../support/invariant.ts";
import { type IterDomain, type Tensor, withoutReductions } from "../../../domain.ts";
import { constantValue, foldAdd, foldCeilDiv, foldSub, isConstant, sameScalar } from "../../../scalar/fold.ts";
import { constant, printScalar, type Scalar } from "../../../scalar/scalar.ts";
import { type Call, reject, resolveAxis, shapeText } from "../../call.ts";
import type { AxisSource, OpBase, OpRow, SpecOf } from "../../row.ts";
import { axisView, shifted, sourcesWithout, zip } from "../families.ts";

// Removes an axis by fixing its index.

export interface SelectOp extends OpBase {
  readonly kind: "Select";
  readonly axis: number;
  readonly index: Scalar;
}

/** A negative number counts from the end of the axis. Throws `axis-out-of-range`, `index-out-of-range`. */
export function selectSpec(tensor: Tensor, axis: number, index: number | Scalar, place: Call): SpecOf<SelectOp> {
  const domain = withoutReductions(tensor.domain.logical);
  const resolved = resolveAxis(axis, domain.length, place);
  const { extent } = at(domain, resolved);
  if (typeof index === "object") {
    if (sameScalar(index, extent)) failIndex(printScalar(index), resolved, extent, place);
    return { kind: "Select", axis: resolved, index };
  }
  const limit = constantValue(extent) ?? Number.MAX_SAFE_INTEGER;
  if (!Number.isSafeInteger(index) || index >= limit || index < -limit) {
    failIndex(String(index), resolved, extent, place);
  }
  return { kind: "Select", axis: resolved, index: index < 0 ? foldAdd(extent, constant(index)) : constant(index) };
}

function failIndex(index: string, axis: number, extent: Scalar, place: Call): never {
  return reject(place, "index-out-of-range", `index ${index} is outside axis ${axis}`, {
    found: `index ${index} of extent ${printScalar(extent)}`,
    expected: `a whole number from -${printScalar(extent)} to ${printScalar(extent)} - 1`,
    help: "choose an index inside the axis",
  });
}

export const selectRow: OpRow<SelectOp> = {
  ...axisView<SelectOp>(({ axis }, rank, [index = 0]) => sourcesWithout([axis], rank, index)),
  standalone: true,
  shape: ({ axis }, operands) => ({ axes: withoutReductions(at(operands, 0).domain.logical).toSpliced(axis, 1) }),
  // `record` checks the index, because it may depend on loops.
  respec: (op) => op,
  sliced: (op, [cut]) => ({ ...op, axis: shifted(op.axis, cut) }),
  whole: ({ axis }, operands) => [{ operand: 0, axis: at(at(operands, 0), axis) }],
  misfit: ({ axis, index }, { input, valueOf }) => {
    const position = valueOf(index);
    const size = at(input, axis);
    return position < 0 || position >= size ? indexMisfit("Select", axis, String(position), size) : null;
  },
};

export interface SliceOp extends OpBase {
  readonly kind: "Slice";
  /** The indices of every axis. */
  readonly ranges: readonly Range[];
}

/** Bounds that are known only at run time may be equal. */
export interface Range {
  readonly start: Scalar;
  readonly stop: Scalar;
  /** From one index to the next; 1 if absent. */
  readonly step?: number;
}

/** Every `steps[i]`-th of `[starts[i], stops[i])` of every axis i. Throws `index-out-of-range`, `bad-argument`. */
export function sliceSpec(
  tensor: Tensor,
  starts: readonly (number | Scalar)[],
  stops: readonly (number | Scalar)[],
  place: Call,
  steps?: readonly number[],
): SpecOf<SliceOp> {
  const domain = withoutReductions(tensor.domain.logical);
  if ([starts, stops, steps ?? stops].some(({ length }) => length !== domain.length)) {
    const found = [`${starts.length} starts`, `${stops.length} stops`, ...(steps ? [`${steps.length} steps`] : [])];
    reject(place, "bad-argument", `a slice needs a start and a stop for every axis${steps ? ", and a step" : ""}`, {
      found: `${found.join(" and ")} for ${shapeText(tensor)}`,
      expected: `${domain.length} of each`,
      help: "give 0 and the extent to keep a whole axis",
    });
  }
  const ranges = domain.map(({ extent }, axis) => {
    const step = requireStep(steps?.[axis] ?? 1, place);
    const range = { start: toScalar(at(starts, axis)), stop: toScalar(at(stops, axis)), ...(step > 1 ? { step } : {}) };
    if (mayBeInside(range, extent)) return range;
    return reject(place, "index-out-of-range", `a slice is not inside axis ${axis}`, {
      found: `${rangeText(range)} of extent ${printScalar(extent)}`,
      expected: `whole numbers 0 <= start < stop <= ${printScalar(extent)}`,
      help: "choose a range of at least one index inside the axis",
    });
  });
  return { kind: "Slice", ranges };
}

function requireStep(step: number, place: Call): number {
  if (Number.isSafeInteger(step) && step >= 1) return step;
  return reject(place, "bad-argument", "the step of a slice is not a whole number of at least 1", {
    found: String(step),
    expected: "a whole number of at least 1",
    help: "leave the step out to keep every index",
  });
}

function toScalar(bound: number | Scalar): Scalar {
  return typeof bound === "object" ? bound : constant(bound);
}

/** Whether the range has an index and is inside the axis, as far as the bounds are known. */
function mayBeInside({ start, stop }: Range, extent: Scalar): boolean {
  const from = constantValue(start) ?? 0;
  const to = constantValue(stop);
  const limit = constantValue(extent) ?? Number.MAX_SAFE_INTEGER;
  if (sameScalar(start, stop) || sameScalar(start, extent)) return false;
  if (!Number.isSafeInteger(from) || from < 0 || from >= limit) return false;
  return to === null || (Number.isSafeInteger(to) && from < to && 0 < to && to <= limit);
}

/** `[0, i0)` */
function rangeText({ start, stop }: Range): string {
  return `[${printScalar(start)}, ${printScalar(stop)})`;
}

export const sliceRow: OpRow<SliceOp> = {
  ...axisView<SliceOp>((_, rank, starts) =>
    Array.from({ length: rank }, (__, axis): AxisSource => ({ axis, offset: starts[axis] ?? 0 })),
  ),
  standalone: true,
  shape: ({ ranges }, operands) => ({
    axes: withoutReductions(at(operands, 0).domain.logical).map(({ iterType }, i) => {
      const { start, stop, step = 1 } = at(ranges, i);
      return { extent: foldCeilDiv(foldSub(stop, start), constant(step)), iterType };
    }),
  }),
  respec: ({ ranges }, operands, _, place) => {
    const starts = ranges.map(({ start }) => start);
    const stops = ranges.map(({ stop }) => stop);
    const steps = ranges.map(({ step = 1 }) => step);
    return sliceSpec(at(operands, 0), starts, stops, place, steps);
  },
  pairs: ({ ranges }, operands, output) =>
    zip(0, at(operands, 0), withoutReductions(output)).filter(({ producer }, i) =>
      isWholeRange(at(ranges, i), producer),
    ),
  sliced: (op, [cut]) => ({ ...op, ranges: op.ranges.filter((_, axis) => axis !== cut) }),
  whole: ({ ranges }, operands) =>
    at(operands, 0).flatMap((axis, i) => (isWholeRange(at(ranges, i), axis) ? [] : [{ operand: 0, axis }])),
  misfit: ({ ranges }, { input, valueOf }) => {
    const known = ranges.map(({ start, stop }) => ({ start: valueOf(start), stop: valueOf(stop) }));
    const axis = known.findIndex(({ start, stop }, i) => start < 0 || start > stop || stop > at(input, i));
    if (axis < 0) return null;
    const { start, stop } = at(known, axis);
    return indexMisfit("Slice", axis, `[${start}, ${stop})`, at(input, axis));
  },
};

/** Whether the range is known to have every index of the axis. */
export function isWholeRange({ start, stop, step = 1 }: Range, axis: IterDomain): boolean {
  return step === 1 && isConstant(start, 0) && sameScalar(axis.extent, stop);
}

/** A diagnostic if an index or range is outside an axis of `size` elements, or null. */
function indexMisfit(kind: string, axis: number, index: string, size: number): ReturnType<OpRow<SliceOp>["misfit"]> {
  return {
    code: "index-out-of-range",
    message: `${kind} reaches outside axis ${axis}`,
    found: `${index} of size ${size}`,
    expected: `an index below ${size}`,
    help: "pass a larger input, or change the index",
  };
}
