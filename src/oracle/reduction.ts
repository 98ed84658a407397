/**
 * Reductions. Floats accumulate in double and round once. The bound covers a float32 accumulator in any order, and a
 * collective that rounds to the dtype once per hop.
 */
import { accumulatorOf, type DType, dtypes } from "../numerics/dtype.ts";
import { reductionFunctions, type ReductionOpType } from "../ir/ops/functions/reduction.ts";
import { compileReduction } from "../ir/ops/functions/compile.ts";
import { at } from "../support/invariant.ts";
import { type Accumulated, accumulationError, gamma, storeAccumulated } from "./tolerance.ts";
import {
  type Bounded,
  type Element,
  elementAt,
  makeValue,
  type Value,
  overflowThreshold,
  smallestRounding,
} from "./value.ts";

/** `hops` is the number of link hops on which the axes may be reduced; 0 if none is a device axis. */
export function reduction(op: ReductionOpType, input: Value, axes: readonly number[], hops: number): Value {
  const shape = input.shape.filter((_, axis) => !axes.includes(axis));
  const reduced = input.shape.map((extent, axis) => (axes.includes(axis) ? extent : 1));
  const kept = input.shape.map((_, axis) => axis).filter((axis) => !axes.includes(axis));
  const fold = folder(op, input.dtype);
  return makeValue(input.dtype, shape, (index) => {
    const start = input.shape.map((_, axis) => (axes.includes(axis) ? 0 : at(index, kept.indexOf(axis))));
    const parts = makeValue(input.dtype, reduced, (inner) =>
      elementAt(
        input,
        inner.map((position, axis) => at(start, axis) + position),
      ),
    );
    return reduceAll(op, parts, hops, fold);
  });
}

function reduceAll(
  op: ReductionOpType,
  { dtype, elements, bounds }: Value,
  hops: number,
  fold: (elements: readonly Element[]) => Element,
): Bounded {
  const { accumulates } = reductionFunctions[op];
  if (accumulates === null) {
    // An extremum changes at most as much as the element with the largest change.
    return { element: fold(elements), bound: bounds.reduce((largest, bound) => Math.max(largest, bound), 0) };
  }
  if (dtypes[dtype].family !== "float") {
    // Integers wrap, so a result is exact or unbounded.
    return { element: fold(elements), bound: bounds.every((bound) => bound === 0) ? 0 : Infinity };
  }
  const count = elements.length;
  const accumulator = accumulatorOf[dtype];
  const accumulated = accumulates === "sum" ? sumOf(elements, bounds) : productOf(elements, bounds);
  // An element passes through at most count - 1 additions or multiplications. Sums never underflow. A product may
  // underflow at each step and each hop, and later factors enlarge the loss.
  const smallest = smallestRounding[accumulator] + (hops > 0 ? smallestRounding[dtype] : 0);
  return storeAccumulated(dtype, accumulated, {
    relative: accumulationError(count - 1, dtype) + gamma(hops, dtype),
    underflow: accumulates === "sum" ? 0 : (count - 1) * smallest * accumulated.peak,
    overflow: overflowThreshold[hops > 0 ? dtype : accumulator],
  });
}

function sumOf(elements: readonly Element[], bounds: Float64Array): Accumulated {
  // The neutral element of float sums: +0 would turn the sum of one -0 into +0.
  let exact = -0;
  let magnitude = 0;
  let spread = 0;
  elements.forEach((element, i) => {
    exact += Number(element);
    magnitude += Math.abs(Number(element));
    spread += at(bounds, i);
  });
  return { exact, magnitude, spread, peak: magnitude + spread, finite: elements.map(Number).every(Number.isFinite) };
}

function productOf(elements: readonly Element[], bounds: Float64Array): Accumulated {
  let exact = 1;
  let furthest = 1;
  let peak = 1;
  elements.forEach((element, i) => {
    const size = Math.abs(Number(element)) + at(bounds, i);
    exact *= Number(element);
    furthest *= size;
    peak *= Math.max(1, size);
  });
  const spread = bounds.some((bound) => bound > 0) ? furthest - Math.abs(exact) : 0;
  return { exact, magnitude: furthest, spread, peak, finite: elements.map(Number).every(Number.isFinite) };
}

/** The exact ops, and all ops of exact dtypes: fold the elements in order. */
function folder(op: ReductionOpType, dtype: DType): (elements: readonly Element[]) => Element {
  const { identity, combine, finish } = compileReduction(op, dtype);
  return (elements) => finish(elements.reduce((total, next) => combine(total, next), identity));
}
