/**
 * Reductions. Floats accumulate in double, compensated, and round once. The bound covers the accumulator of a back end
 * that adds in blocks, and a collective that rounds to the dtype once per hop.
 */
import { elementCount } from "../numerics/tensor/host-tensor.ts";
import type { ReductionOpType } from "../ir/ops/op.ts";
import { accumulatorOf, type DType, dtypes, rangeOf } from "../numerics/dtype.ts";
import { at } from "../support/invariant.ts";
import { combinationOf, reductionDefinitions } from "./definitions.ts";
import {
  type Accumulated,
  accumulationError,
  type Arithmetic,
  blockRoundings,
  exactSum,
  gamma,
  storeAccumulated,
} from "./tolerance.ts";
import {
  type Bounded,
  type Element,
  makeValue,
  oracleNumbers,
  overflowThreshold,
  smallestNormal,
  smallestRounding,
  type OracleValue,
} from "./value.ts";

/** `hops` is the number of link hops on which the axes may be reduced; 0 if none is a device axis. */
export function reduction(
  op: ReductionOpType,
  input: OracleValue,
  axes: readonly number[],
  hops: number,
  arithmetic: Arithmetic,
): OracleValue {
  const axesOfInput = input.shape.map((extent, axis) => ({
    extent,
    stride: elementCount(input.shape.slice(axis + 1)),
  }));
  const kept = axesOfInput.filter((_, axis) => !axes.includes(axis));
  const reduced = axesOfInput.filter((_, axis) => axes.includes(axis));
  const isFloat = dtypes[input.dtype].family === "float";
  const numbers = isFloat ? oracleNumbers(input) : new Float64Array();
  return makeValue(
    input.dtype,
    kept.map(({ extent }) => extent),
    (index) => {
      const start = kept.reduce((sum, { stride }, axis) => sum + at(index, axis) * stride, 0);
      return reduceAll(op, { ...input, numbers }, { start, axes: reduced }, hops, arithmetic);
    },
  );
}

/** The elements that are reduced to one, in row-major order. */
interface Box {
  readonly start: number;
  readonly axes: readonly { readonly extent: number; readonly stride: number }[];
}

/** Elements one stride apart. */
type Visit = (start: number, stride: number, count: number) => void;

/** Visits the runs of the box along its innermost axis, in order. */
function forEachRun({ start, axes: [axis, ...rest] }: Box, visit: Visit): void {
  if (axis === undefined) return visit(start, 0, 1);
  if (rest.length === 0) return visit(start, axis.stride, axis.extent);
  for (let i = 0; i < axis.extent; i++) forEachRun({ start: start + i * axis.stride, axes: rest }, visit);
}

function reduceAll(
  op: ReductionOpType,
  { dtype, elements, numbers, bounds }: OracleValue & { readonly numbers: Float64Array },
  box: Box,
  hops: number,
  { keepsNaN }: Arithmetic,
): Bounded {
  const { accumulates } = reductionDefinitions[op];
  const isFloat = dtypes[dtype].family === "float";
  if (accumulates === null || !isFloat) {
    let result: Element | undefined;
    let furthest = 0;
    forEachRun(box, (start, stride, count) => {
      for (let i = 0; i < count; i++) {
        const element = at(elements, start + i * stride);
        result = result === undefined ? element : combinationOf(op, dtype, result, element);
        furthest = Math.max(furthest, at(bounds, start + i * stride));
      }
    });
    const element = result ?? emptyReduction(op, dtype);
    // An extremum changes at most as much as the element with the largest change. Integers wrap: exact or unbounded.
    const bound = accumulates === null || furthest === 0 ? furthest : Infinity;
    return { element, bound: hops > 0 && !keepsNaN && Number.isNaN(element) ? Infinity : bound };
  }
  const terms = box.axes.reduce((product, { extent }) => product * extent, 1);
  const accumulation = accumulations[accumulates]();
  forEachRun(box, (start, stride, count) => {
    accumulation.addRun(numbers, bounds, start, stride, count);
  });
  return storeAll(accumulates, dtype, accumulation.value(), { terms, roundings: blockRoundings(terms), hops });
}

/** The result of `terms` floats, of which the back end rounds `roundings` times. */
export function storeAll(
  accumulates: "sum" | "product",
  dtype: DType,
  accumulated: Accumulated,
  { terms, roundings, hops }: { readonly terms: number; readonly roundings: number; readonly hops: number },
): Bounded {
  const accumulator = accumulatorOf(dtype);
  // Sums never underflow. A product may underflow at each step and each hop, and later factors enlarge the loss.
  const smallest = smallestRounding[accumulator] + (hops > 0 ? smallestRounding[dtype] : 0);
  const own = accumulates === "sum" ? 2 : terms;
  return storeAccumulated(dtype, accumulated, {
    relative: accumulationError(roundings, own, dtype) + gamma(hops, dtype),
    underflow: accumulates === "sum" ? 0 : (terms - 1) * smallest * accumulated.peak,
    overflow: overflowThreshold[hops > 0 ? dtype : accumulator],
    vanishing: smallestNormal[hops > 0 ? dtype : accumulator],
  });
}

/** What floats that were added so far, with their bounds, come to. */
interface Accumulation {
  readonly addRun: (elements: Float64Array, bounds: Float64Array, start: number, stride: number, count: number) => void;
  readonly value: () => Accumulated;
}

export const accumulations: { readonly [K in "sum" | "product"]: () => Accumulation } = {
  sum: () => {
    const sum = exactSum();
    let [magnitude, spread, finite] = [0, 0, true];
    return {
      addRun: (elements, bounds, start, stride, count) => {
        sum.addRun(elements, start, stride, count);
        // Plain indexing: long sums are all of the oracle's time.
        for (let i = 0; i < count; i++) {
          const size = Math.abs(elements[start + i * stride] ?? NaN);
          spread += bounds[start + i * stride] ?? NaN;
          if (size < Infinity) magnitude += size;
          else finite = false;
        }
      },
      value: () => ({ exact: sum.value(), magnitude, spread, peak: magnitude + spread, least: Infinity, finite }),
    };
  },
  product: () => {
    let [exact, furthest, peak, least, moves, finite] = [1, 1, 1, 1, false, true];
    return {
      addRun: (elements, bounds, start, stride, count) => {
        for (let i = 0; i < count; i++) {
          const [x, by] = [at(elements, start + i * stride), at(bounds, start + i * stride)];
          exact *= x;
          if (!Number.isFinite(x)) {
            finite = false;
            continue;
          }
          const size = Math.abs(x) + by;
          moves ||= by > 0;
          furthest *= size;
          peak *= Math.max(1, size);
          least *= Math.min(1, size);
        }
      },
      value: () => ({
        exact,
        magnitude: furthest,
        spread: moves ? furthest - Math.abs(exact) : 0,
        peak,
        least,
        finite,
      }),
    };
  },
};

// What a reduction of no elements is: the element that changes no other one.

function emptyReduction(op: ReductionOpType, dtype: DType): Element {
  const [least, greatest] = rangeOf(dtype);
  if (op === "amax") return least;
  if (op === "amin") return greatest;
  const value = op === "sum" ? 0 : 1;
  return dtype === "int64" ? BigInt(value) : value;
}
