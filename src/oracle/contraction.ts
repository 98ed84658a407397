/**
 * matmul and linear: sums of products in double, compensated for double operands. The bound is the error of a back
 * end's accumulator, gamma(c) * sum |a||b|, plus the effect of the operands' own errors. Integers wrap as their dtype
 * does.
 */
import { accumulatorOf, type DType, dtypes } from "../numerics/dtype.ts";
import { requireGroupEnds } from "../numerics/sum-order.ts";
import { at, getOrMake } from "../support/invariant.ts";
import { wrap } from "./definitions.ts";
import { createDots, type DotRow } from "./dots/float-dots.ts";
import { contiguousRuns, type DotRows, dotRows, type OperandRuns, operandRunsOf } from "./dots/operand-runs.ts";
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
  overflowThreshold,
  smallestRounding,
  store,
  type OracleValue,
} from "./value.ts";

/** How a back end adds the terms of an element. */
export interface Accumulating {
  /** The number of link hops on which devices may add partial results over K; 0 if no device axis shares K. */
  readonly hops: number;
  readonly arithmetic: Arithmetic;
}

/** a [.., M, K] or [K], b [.., K, N] or [K]; batch axes broadcast. `shape` is the output's, and `to` its dtype. */
export function matmul(
  a: OracleValue,
  b: OracleValue,
  shape: readonly number[],
  accumulating: Accumulating,
  to = a.dtype,
): OracleValue {
  const rowAxes = a.shape.length > 1 ? 1 : 0;
  const columnAxes = b.shape.length > 1 ? 1 : 0;
  const batchAxes = shape.length - rowAxes - columnAxes;
  const leftK = a.shape.length - 1;
  const rightK = b.shape.length - 1 - columnAxes;
  const left = operandRunsOf(a, leftK, shape, (position) => batchAxes - (leftK - rowAxes) + position);
  const right = operandRunsOf(b, rightK, shape, (position) =>
    position > rightK ? shape.length - 1 : batchAxes - rightK + position,
  );
  return contracted(left, right, shape, { columns: columnAxes > 0, accumulating, to });
}

/** x [.., K], weight [N, K] or [K], bias [N] or []. A weight [B, N, K] is one for each index of x's first axes. */
export function linear(
  x: OracleValue,
  weight: OracleValue,
  bias: OracleValue | null,
  shape: readonly number[],
  accumulating: Accumulating,
): OracleValue {
  const columnAxes = weight.shape.length - 1;
  const left = operandRunsOf(x, x.shape.length - 1, shape, (position) => position);
  const right = operandRunsOf(weight, columnAxes, shape, (position) =>
    position < columnAxes - 1 ? position : shape.length - 1,
  );
  return contracted(left, right, shape, {
    columns: columnAxes > 0,
    accumulating,
    ...(bias === null ? {} : { bias: (index) => elementAt(bias, index.slice(index.length - columnAxes)) }),
  });
}

/**
 * x [.., M, K], y [.., E, K, N] or [.., M, N], ends [.., E]: a matmul of each group, and 0 where there is none.
 * Throws `group-ends-invalid`.
 */
export function groupedMatmul(
  x: OracleValue,
  y: OracleValue,
  ends: OracleValue,
  shape: readonly number[],
  accumulating: Accumulating,
): OracleValue {
  const [rows, k, n] = [at(x.shape, x.shape.length - 2), at(x.shape, x.shape.length - 1), at(shape, shape.length - 1)];
  const perGroup = y.shape.length > x.shape.length;
  const results = new Map<string, OracleValue>();
  const endsOf = new Map<string, readonly number[]>();
  const groupsAt = (batch: readonly number[]): readonly number[] =>
    getOrMake(endsOf, batch.join(), () => {
      const found = Array.from(part(ends, batch, 1).elements, Number);
      requireGroupEnds(found, rows);
      return found;
    });
  const resultOf = (batch: readonly number[], group: number, start: number, end: number): OracleValue =>
    getOrMake(results, [...batch, group].join(), () => {
      const left = rowsFrom(part(x, batch, 2), start, end);
      return perGroup
        ? matmul(left, part(y, [...batch, group], 2), [end - start, n], accumulating)
        : matmul(turned(left), rowsFrom(part(y, batch, 2), start, end), [k, n], accumulating);
    });
  const isSure = isExact(ends);
  const bounded = (found: Bounded): Bounded => (isSure ? found : { ...found, bound: Infinity });
  const zero: Bounded = { element: x.dtype === "int64" ? 0n : 0, bound: 0 };
  return makeValue(x.dtype, shape, (index) => {
    const batch = index.slice(0, x.shape.length - 2);
    const inner = index.slice(batch.length);
    const stops = groupsAt(batch);
    const group = perGroup ? stops.findIndex((end) => at(inner, 0) < end) : at(inner, 0);
    const [start, end] = [stops[group - 1] ?? 0, stops[group] ?? 0];
    if (group < 0 || start === end) return zero;
    const own = perGroup ? [at(inner, 0) - start, at(inner, 1)] : inner.slice(1);
    return bounded(elementAt(resultOf(batch, group, start, end), own));
  });
}

/** The elements at the leading indices, without these axes: of the last of them that the value has, or its only one. */
function part(value: OracleValue, leading: readonly number[], kept: number): OracleValue {
  const axes = value.shape.length - kept;
  const own = leading.slice(leading.length - axes).map((i, axis) => (value.shape[axis] === 1 ? 0 : i));
  return makeValue(value.dtype, value.shape.slice(axes), (index) => elementAt(value, [...own, ...index]));
}

function rowsFrom(value: OracleValue, start: number, end: number): OracleValue {
  return makeValue(value.dtype, [end - start, at(value.shape, 1)], ([i = 0, j = 0]) =>
    elementAt(value, [start + i, j]),
  );
}

function turned(value: OracleValue): OracleValue {
  return makeValue(value.dtype, value.shape.toReversed(), (index) => elementAt(value, index.toReversed()));
}

interface Contracted {
  /** Whether the last axis of the result is one of the right operand. */
  readonly columns: boolean;
  readonly accumulating: Accumulating;
  /** What is added to an element of the result. */
  readonly bias?: (index: readonly number[]) => Bounded;
  /** The operands' dtype if omitted. */
  readonly to?: DType;
}

function contracted(
  left: OperandRuns,
  right: OperandRuns,
  shape: readonly number[],
  { columns, accumulating, bias, to: dtype = left.value.dtype }: Contracted,
): OracleValue {
  const isFloat = dtypes[dtype].family === "float";
  const [a, b] = isFloat ? [contiguousRuns(left), contiguousRuns(right)] : [left, right];
  const rows = dotRows(a, b, columns ? shape : [...shape, 1]);
  const element = isFloat
    ? floatElement(a, b, rows, dtype, bias !== undefined, accumulating)
    : integerElement(a, b, rows);
  return makeValue(dtype, shape, (index, flat) => element(flat, bias?.(index) ?? null));
}

/** The element at a position in row-major order. They are asked for in order. */
type ElementOf = (flat: number, bias: Bounded | null) => Bounded;

function floatElement(
  a: OperandRuns,
  b: OperandRuns,
  rows: DotRows,
  dtype: DType,
  hasBias: boolean,
  { hops, arithmetic }: Accumulating,
): ElementOf {
  const { count } = a;
  const accumulator = accumulatorOf(dtype);
  const roundings = contractionRoundings(count, dtype, arithmetic) + (hasBias ? 1 : 0);
  // The oracle's own roundings. Products of two narrower floats are exact in double.
  const own = dtype === "double" ? 3 : count;
  const limits = {
    relative: accumulationError(roundings, own, dtype) + gamma(hops, dtype),
    underflow: count * smallestRounding[accumulator] + hops * smallestRounding[dtype],
    overflow: overflowThreshold[hops > 0 ? dtype : accumulator],
    vanishing: 0,
  };
  const compensates = dtype === "double" && arithmetic.valuesOnly !== true;
  const dots = createDots(a, b, rows);
  let found: DotRow | null = null;
  return (flat, bias) => {
    const row = Math.floor(flat / rows.count);
    const column = flat % rows.count;
    if (column === 0 || found === null) found = dots.row(row);
    const place = found.start + column;
    let sum = at(found.sums, place);
    let magnitude = at(found.magnitudes, place);
    let spread = at(found.spreads, place);
    if (bias !== null) {
      sum += Number(bias.element);
      magnitude += Math.abs(Number(bias.element));
      spread += bias.bound;
    }
    const skipsZeros = arithmetic.skipsZeros === true;
    const needsTerms = compensates || (!Number.isFinite(magnitude) && (skipsZeros || !Number.isNaN(sum)));
    const total = needsTerms
      ? sumOfTerms(a, b, at(rows.x, row), at(rows.y, row) + column * rows.step, bias)
      : { exact: sum, magnitude: Number.isNaN(sum) ? 0 : magnitude, finite: !Number.isNaN(sum), skippable: false };
    const { exact, magnitude: size, finite, skippable } = total;
    if (skipsZeros && skippable) return store(dtype, exact, Infinity);
    // A spread of properties would take longer than the sums.
    return storeAccumulated(
      dtype,
      { exact, magnitude: size, finite, spread, peak: size + spread, least: Infinity },
      limits,
    );
  };
}

interface SumOfTerms {
  readonly exact: number;
  readonly magnitude: number;
  readonly finite: boolean;
  /** Whether a term is 0 times an infinite number or NaN. */
  readonly skippable: boolean;
}

/** The sum again, compensated, with the magnitude of its finite terms. */
function sumOfTerms(a: OperandRuns, b: OperandRuns, x: number, y: number, bias: Bounded | null): SumOfTerms {
  const terms = new Float64Array(a.count);
  let magnitude = 0;
  let finite = true;
  let skippable = false;
  for (let k = 0; k < a.count; k++) {
    const p = a.numbers[x + k] ?? NaN;
    const q = b.numbers[y + k] ?? NaN;
    terms[k] = p * q;
    if (Number.isFinite(p) && Number.isFinite(q)) magnitude += Math.abs(p * q);
    else finite = false;
    skippable ||= !Number.isFinite(p * q) && (p === 0 || q === 0);
  }
  const sum = exactSum();
  // Contractions start from +0.
  sum.add(0);
  sum.addRun(terms, 0, 1, a.count);
  if (bias !== null) {
    const term = Number(bias.element);
    sum.add(term);
    if (Number.isFinite(term)) magnitude += Math.abs(term);
    else finite = false;
  }
  return { exact: sum.value(), magnitude, finite, skippable };
}

function integerElement(a: OperandRuns, b: OperandRuns, { x, y, step, count }: DotRows): ElementOf {
  const [left, right] = [a.value, b.value];
  const exactOperands = isExact(left) && isExact(right);
  return (flat, bias) => {
    const row = Math.floor(flat / count);
    const [start, other] = [at(x, row), at(y, row) + (flat % count) * step];
    let sum = BigInt(bias?.element ?? 0);
    for (let k = 0; k < a.count; k++) {
      sum += BigInt(at(left.elements, start + k * a.stride)) * BigInt(at(right.elements, other + k * b.stride));
    }
    // Integers wrap, so a result is exact or unbounded.
    return {
      element: wrap(left.dtype, sum),
      bound: exactOperands && (bias === null || bias.bound === 0) ? 0 : Infinity,
    };
  };
}

function isExact({ bounds }: OracleValue): boolean {
  return bounds.every((bound) => bound === 0);
}
