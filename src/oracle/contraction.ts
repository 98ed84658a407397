/**
 * matmul and linear: sums of products in double. The bound is the error of a float32 accumulator, gamma(c) * sum
 * |a||b|, plus the effect of the operands' own errors. Integers wrap as their dtype does.
 */
import { accumulatorOf, dtypes } from "../numerics/dtype.ts";
import { compileBinary } from "../ir/ops/functions/compile.ts";
import { at } from "../support/invariant.ts";
import { accumulationError, contractionRoundings, gamma, storeAccumulated } from "./tolerance.ts";
import { type Bounded, elementAt, makeValue, type Value, overflowThreshold, smallestRounding } from "./value.ts";

/**
 * a [.., M, K] or [K], b [.., K, N] or [K]; batch axes broadcast. `shape` is the output's. `hops` is the number of
 * link hops on which devices may add partial results over K; 0 if no device axis shares K.
 */
export function matmul(a: Value, b: Value, shape: readonly number[], hops: number): Value {
  const rowAxes = a.shape.length > 1 ? 1 : 0;
  const columnAxes = b.shape.length > 1 ? 1 : 0;
  const batchAxes = shape.length - rowAxes - columnAxes;
  const leftK = a.shape.length - 1;
  const rightK = b.shape.length - 1 - columnAxes;
  const dot = createDot(a, b, at(a.shape, leftK), contractionRoundings.Matmul(at(a.shape, leftK)), hops);
  return makeValue(a.dtype, shape, (index) => {
    const batch = index.slice(0, batchAxes);
    const m = index.slice(batchAxes, batchAxes + rowAxes);
    const n = index.slice(batchAxes + rowAxes);
    const left = [...batch.slice(batch.length - leftK + rowAxes), ...m, 0];
    const right = [...batch.slice(batch.length - rightK), 0, ...n];
    return dot(runOf(a.shape, left, leftK), runOf(b.shape, right, rightK), null);
  });
}

/** x [.., K], weight [N, K] or [K], bias [N] or []. `hops` as in `matmul`. */
export function linear(x: Value, weight: Value, bias: Value | null, shape: readonly number[], hops: number): Value {
  const columnAxes = weight.shape.length - 1;
  const leftK = x.shape.length - 1;
  const count = at(x.shape, leftK);
  const dot = createDot(x, weight, count, contractionRoundings.Linear(count, bias !== null), hops);
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

function createDot(a: Value, b: Value, count: number, roundings: number, hops: number): Dot {
  return dtypes[a.dtype].family === "float" ? floatDot(a, b, count, roundings, hops) : integerDot(a, b, count);
}

function floatDot(a: Value, b: Value, count: number, roundings: number, hops: number): Dot {
  const { dtype } = a;
  // Typed arrays keep the inner loop plain arithmetic.
  const left = Float64Array.from(a.elements, Number);
  const right = Float64Array.from(b.elements, Number);
  const exactOperands = isExact(a) && isExact(b);
  const accumulator = accumulatorOf[dtype];
  const limits = {
    relative: accumulationError(roundings, dtype) + gamma(hops, dtype),
    underflow: count * smallestRounding[accumulator] + hops * smallestRounding[dtype],
    overflow: overflowThreshold[hops > 0 ? dtype : accumulator],
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
      const [da, db] = [at(a.bounds, i), at(b.bounds, j)];
      spread += Math.abs(at(left, i)) * db + Math.abs(at(right, j)) * da + da * db;
    }
    if (bias !== null) {
      sum += Number(bias.element);
      magnitude += Math.abs(Number(bias.element));
      spread += bias.bound;
    }
    const finite =
      Number.isFinite(magnitude) ||
      ((bias === null || Number.isFinite(Number(bias.element))) &&
        runIsFinite(left, x, count) &&
        runIsFinite(right, y, count));
    return storeAccumulated(dtype, { exact: sum, magnitude, spread, peak: magnitude + spread, finite }, limits);
  };
}

function runIsFinite(numbers: Float64Array, { start, stride }: Run, count: number): boolean {
  return Array.from({ length: count }, (_, k) => at(numbers, start + k * stride)).every(Number.isFinite);
}

function integerDot(a: Value, b: Value, count: number): Dot {
  const multiply = compileBinary("mul", a.dtype);
  const add = compileBinary("add", a.dtype);
  const exactOperands = isExact(a) && isExact(b);
  return (x, y, bias) => {
    const products = Array.from({ length: count }, (_, k) =>
      multiply(at(a.elements, x.start + k * x.stride), at(b.elements, y.start + k * y.stride)),
    );
    const element = [...products, ...(bias === null ? [] : [bias.element])].reduce((sum, next) => add(sum, next));
    // Integers wrap, so a result is exact or unbounded.
    return { element, bound: exactOperands && (bias === null || bias.bound === 0) ? 0 : Infinity };
  };
}

function isExact({ bounds }: Value): boolean {
  return bounds.every((bound) => bound === 0);
}
