/**
 * Rows of a product in double, from the very numbers that the devices are given, with the error that a device may make
 * in each element.
 *
 * The bound is that of the oracle (src/oracle/tolerance.ts) but for the accumulator's: over tens of thousands of
 * products the worst case says nothing, so sqrt(c) takes the place of c there, with lambda = 8 (Higham and Mary, "A new
 * approach to probabilistic rounding error analysis", 2019). Where devices share K, each rounds its part to the dtype
 * and so does every hop of the wire.
 */
import { accumulatorOf, dtypes } from "../../../src/numerics/dtype.ts";
import { at } from "../../../src/support/invariant.ts";
import { type LargeMatrix, readRow } from "./large-matrix.ts";

export interface SampledRows {
  readonly rows: readonly number[];
  /** Row-major, [rows, N]. */
  readonly exact: Float64Array;
  readonly bounds: Float64Array;
}

export interface SampleOptions {
  readonly rows: readonly number[];
  /** Into how many parts of equal length devices cut K. */
  readonly parts: number;
  /** Whether every product and partial sum is a number of the dtype: then nothing may differ. */
  readonly exact: boolean;
}

const lambda = 8;

export function sampleRows(a: LargeMatrix, b: LargeMatrix, { rows, parts, exact }: SampleOptions): SampledRows {
  const [k, n] = [a.columns, b.columns];
  const left = rows.map((row) => {
    const numbers = new Float64Array(k);
    readRow(a, row, numbers);
    return numbers;
  });
  const right = new Float64Array(n);
  const size = rows.length * n;
  const [sums, partial] = [new Float64Array(size), new Float64Array(size)];
  const [magnitudes, peaks] = [new Float64Array(exact ? 0 : size), new Float64Array(exact ? 0 : size)];
  const partLength = k / parts;
  for (let i = 0; i < k; i++) {
    readRow(b, i, right);
    left.forEach((numbers, r) => {
      const x = at(numbers, i);
      if (x === 0) return;
      if (exact) addScaled(partial, r * n, right, x);
      else addScaledWithMagnitude(partial, magnitudes, r * n, right, x);
    });
    if ((i + 1) % partLength !== 0) continue;
    for (let j = 0; j < size; j++) {
      sums[j] = at(sums, j) + at(partial, j);
      if (!exact) peaks[j] = at(peaks, j) + Math.abs(at(partial, j));
    }
    partial.fill(0);
  }
  return { rows, exact: sums, bounds: exact ? new Float64Array(size) : boundsOf(a, parts, sums, magnitudes, peaks) };
}

/** `peaks`: the sums of the parts' absolute values. */
function boundsOf(
  { dtype, columns }: LargeMatrix,
  parts: number,
  sums: Float64Array,
  magnitudes: Float64Array,
  peaks: Float64Array,
): Float64Array {
  const { epsilon } = dtypes[dtype];
  const accumulation = lambda * Math.sqrt(columns) * dtypes[accumulatorOf(dtype)].epsilon;
  // A part is rounded once, and a sum over a ring in each of at most 2 (parts - 1) hops.
  const wire = parts > 1 ? (2 * parts - 1) * epsilon : 0;
  return sums.map(
    (sum, j) => accumulation * at(magnitudes, j) + wire * at(peaks, j) + epsilon * (Math.abs(sum) + 1e-30),
  );
}

/** Plain indexing: these loops are all of the time. */
function addScaled(into: Float64Array, offset: number, row: Float64Array, x: number): void {
  const n = row.length;
  for (let j = 0; j < n; j++) into[offset + j] = (into[offset + j] ?? NaN) + x * (row[j] ?? NaN);
}

function addScaledWithMagnitude(
  into: Float64Array,
  magnitudes: Float64Array,
  offset: number,
  row: Float64Array,
  x: number,
): void {
  const n = row.length;
  for (let j = 0; j < n; j++) {
    const product = x * (row[j] ?? NaN);
    into[offset + j] = (into[offset + j] ?? NaN) + product;
    magnitudes[offset + j] = (magnitudes[offset + j] ?? NaN) + Math.abs(product);
  }
}
