/**
 * matmul and linear: sums of products in double, compensated for double operands. The bound is the error of a back
 * end's accumulator, gamma(c) * sum |a||b|, plus the effect of the operands' own errors. Integers wrap as their dtype
 * does.
 */
import { accumulatorOf, dtypes } from "../numerics/dtype.ts";
import { at } from "../support/invariant.ts";
import { type Moved, wrap } from "./definitions.ts";
import {
  type Arithmetic,
  accumulationError,
  contractionRoundings,
  exactSum,
  gamma,
  storeAccumulated,
} from "./tolerance.ts";
import {
  type Bounded,
  elementAt,
  makeValue,
  numbersOf,
  type Value,
  overflowThreshold,
  smallestRounding,
} from "./value.ts";

/** How a back end adds the terms of an element. */
export interface Accumulating {
  /** The number of link hops on which devices may add partial results over K; 0 if no device axis shares K. */
  readonly hops: number;
  readonly arithmetic: Arithmetic;
}

/** a [.., M, K] or [K], b [.., K, N] or [K]; batch axes broadcast. `shape` is the output's. */
export function matmul(a: Value, b: Value, shape: readonly number[], accumulating: Accumulating): Value {
  const rowAxes = a.shape.length > 1 ? 1 : 0;
  const columnAxes = b.shape.length > 1 ? 1 : 0;
  const batchAxes = shape.length - rowAxes - columnAxes;
  const leftK = a.shape.length - 1;
  const rightK = b.shape.length - 1 - columnAxes;
  const dot = createDot(a, b, at(a.shape, leftK), false, accumulating);
  return makeValue(a.dtype, shape, (index) => {
    const batch = index.slice(0, batchAxes);
    const m = index.slice(batchAxes, batchAxes + rowAxes);
    const n = index.slice(batchAxes + rowAxes);
    const left = [...batch.slice(batch.length - leftK + rowAxes), ...m, 0];
    const right = [...batch.slice(batch.length - rightK), 0, ...n];
    return dot(runOf(a.shape, left, leftK), runOf(b.shape, right, rightK), null);
  });
}

/** x [.., K], weight [N, K] or [K], bias [N] or []. */
export function linear(
  x: Value,
  weight: Value,
  bias: Value | null,
  shape: readonly number[],
  accumulating: Accumulating,
): Value {
  const columnAxes = weight.shape.length - 1;
  const leftK = x.shape.length - 1;
  const count = at(x.shape, leftK);
  const dot = createDot(x, weight, count, bias !== null, accumulating);
  return makeValue(x.dtype, shape, (index) => {
    const rows = index.slice(0, index.length - columnAxes);
    const n = index.slice(index.length - columnAxes);
    const left = runOf(x.shape, [...rows, 0], leftK);
    const right = runOf(weight.shape, [...n, 0], columnAxes);
    return dot(left, right, bias === null ? null : elementAt(bias, n));
  });
}

/** The positions of the elements along one axis. */
interface Run {
  readonly start: number;
  readonly stride: number;
}

/** The run along `axis` through `index`. A batch axis of extent 1 ignores the index. */
function runOf(shape: readonly number[], index: readonly number[], axis: number): Run {
  let start = 0;
  let stride = 1;
  shape.forEach((extent, position) => {
    start = start * extent + (extent === 1 ? 0 : at(index, position));
    if (position > axis) stride *= extent;
  });
  return { start, stride };
}

type Dot = (x: Run, y: Run, bias: Bounded | null) => Bounded;

function createDot(a: Value, b: Value, count: number, hasBias: boolean, accumulating: Accumulating): Dot {
  return dtypes[a.dtype].family === "float" ? floatDot(a, b, count, hasBias, accumulating) : integerDot(a, b, count);
}

function floatDot(a: Value, b: Value, count: number, hasBias: boolean, { hops, arithmetic }: Accumulating): Dot {
  const { dtype } = a;
  // Typed arrays keep the inner loop plain arithmetic.
  const left = numbersOf(a);
  const right = numbersOf(b);
  const exactOperands = isExact(a) && isExact(b);
  const accumulator = accumulatorOf[dtype];
  const roundings = contractionRoundings(count, dtype, arithmetic) + (hasBias ? 1 : 0);
  // The oracle's own roundings. Products of two narrower floats are exact in double.
  const own = dtype === "double" ? 3 : count;
  const limits = {
    relative: accumulationError(roundings, own, dtype) + gamma(hops, dtype),
    underflow: count * smallestRounding[accumulator] + hops * smallestRounding[dtype],
    overflow: overflowThreshold[hops > 0 ? dtype : accumulator],
    vanishing: 0,
  };
  return (x, y, bias) => {
    let sum = 0;
    let magnitude = 0;
    let spread = 0;
    for (let k = 0; k < count; k++) {
      const i = x.start + k * x.stride;
      const j = y.start + k * y.stride;
      // Plain indexing, because the oracle spends nearly all of its time in this loop.
      const product = (left[i] ?? NaN) * (right[j] ?? NaN);
      sum += product;
      magnitude += Math.abs(product);
      if (exactOperands) continue;
      spread += spreadOf(
        { size: Math.abs(at(left, i)), by: at(a.bounds, i) },
        { size: Math.abs(at(right, j)), by: at(b.bounds, j) },
      );
    }
    if (bias !== null) {
      sum += Number(bias.element);
      magnitude += Math.abs(Number(bias.element));
      spread += bias.bound;
    }
    const needsTerms = dtype === "double" || !Number.isFinite(magnitude);
    const careful = needsTerms ? sumOfTerms(left, right, x, y, count, bias) : { exact: sum, magnitude, finite: true };
    return storeAccumulated(dtype, { ...careful, spread, peak: careful.magnitude + spread, least: Infinity }, limits);
  };
}

/** The largest change of a product when its operands change. */
function spreadOf(x: Moved, y: Moved): number {
  if (Number.isFinite(x.size) && Number.isFinite(y.size)) return x.size * y.by + y.size * x.by + x.by * y.by;
  // NaN and infinity do not change, unless the sign of the other operand may.
  const isOpen = [x, y].some(({ size, by }) => by > 0 && size <= by);
  return x.by === Infinity || y.by === Infinity || isOpen ? Infinity : 0;
}

/** The sum again, compensated, with the magnitude of its finite terms. */
function sumOfTerms(
  left: Float64Array,
  right: Float64Array,
  x: Run,
  y: Run,
  count: number,
  bias: Bounded | null,
): { readonly exact: number; readonly magnitude: number; readonly finite: boolean } {
  const sum = exactSum();
  let magnitude = 0;
  let finite = true;
  const add = (term: number, isFinite: boolean): void => {
    sum.add(term);
    if (isFinite) magnitude += Math.abs(term);
    else finite = false;
  };
  // Contractions start from +0.
  sum.add(0);
  for (let k = 0; k < count; k++) {
    const [p, q] = [at(left, x.start + k * x.stride), at(right, y.start + k * y.stride)];
    add(p * q, Number.isFinite(p) && Number.isFinite(q));
  }
  if (bias !== null) add(Number(bias.element), Number.isFinite(Number(bias.element)));
  return { exact: sum.value(), magnitude, finite };
}

function integerDot(a: Value, b: Value, count: number): Dot {
  const exactOperands = isExact(a) && isExact(b);
  return (x, y, bias) => {
    let sum = BigInt(bias?.element ?? 0);
    for (let k = 0; k < count; k++) {
      sum += BigInt(at(a.elements, x.start + k * x.stride)) * BigInt(at(b.elements, y.start + k * y.stride));
    }
    // Integers wrap, so a result is exact or unbounded.
    return { element: wrap(a.dtype, sum), bound: exactOperands && (bias === null || bias.bound === 0) ? 0 : Infinity };
  };
}

function isExact({ bounds }: Value): boolean {
  return bounds.every((bound) => bound === 0);
}
