/**
 * Sums of products of floats, in double: the values, the sums of the products' magnitudes, and how far the operands' own
 * errors move them. Nearly all of the oracle's time is spent here, hence plain loops over typed arrays, two columns at a
 * time. Variables of these loops are not destructured: V8 would allocate their numbers. Large products take lane-dots.
 */
import { at } from "../../support/invariant.ts";
import { tileInLanes } from "./lane-tile.ts";
import { type DotRows, type OperandRuns, type Tile, dotTileRows } from "./operand-runs.ts";

/** Element `start + column` of each of a tile's arrays is a column's. */
export interface DotRow extends Tile {
  readonly start: number;
}

export interface Dots {
  /** The products of the run of `a` of a row, with `count` runs of `b`. */
  readonly row: (row: number) => DotRow;
}

/** Columns that are computed together, so that what they read stays in the cache. */
const tileColumns = 16;

/** Below that many products, compiling the module takes longer than the loops. */
const fewProducts = 2 ** 17;

/** Rows are asked for in order. Runs are contiguous. */
export function createDots(a: OperandRuns, b: OperandRuns, { x, y, step, count }: DotRows): Dots {
  const [isLeftExact, isRightExact] = [a, b].map(({ value }) => value.bounds.every((bound) => bound === 0));
  const isExact = isLeftExact === true && isRightExact === true;
  const size = Math.min(dotTileRows, x.length) * count;
  const tile = { sums: new Float64Array(size), magnitudes: new Float64Array(size), spreads: new Float64Array(size) };
  const errors = isExact ? "none" : isRightExact === true ? "left" : "both";
  const isLarge = x.length * count * a.count >= fewProducts;
  const fillTile = isLarge ? tileInLanes(a, b, { x, y, step, count }, errors, tile) : null;
  const isOpen = openRuns(a, b);
  const fillLoops = (first: number, last: number): void => {
    const fillPair = fillPairs[errors];
    for (let block = 0; block < count; block += tileColumns) {
      const end = Math.min(block + tileColumns, count);
      for (let row = first; row < last; row++) {
        const [start, right, place] = [at(x, row), at(y, row), (row - first) * count];
        for (let column = block; column < end; column += 2) {
          const next = Math.min(column + 1, end - 1);
          fillPair(a, b, [start, right + column * step, right + next * step], [place + column, place + next], tile);
        }
      }
    }
  };
  const fill = (first: number, last: number): void => {
    (fillTile ?? fillLoops)(first, last);
    if (isExact) return;
    for (let row = first; row < last; row++) {
      for (let column = 0; column < count; column++) {
        const place = (row - first) * count + column;
        if (Number.isFinite(at(tile.spreads, place))) continue;
        if (Number.isFinite(at(tile.magnitudes, place))) {
          // All operands are finite: a bound is not.
          tile.spreads[place] = Infinity;
          continue;
        }
        const [start, right] = [at(x, row), at(y, row) + column * step];
        // NaN stays NaN if no operand may be 0 or infinite.
        const isFixed = Number.isNaN(at(tile.sums, place)) && !isOpen(start, right);
        tile.spreads[place] = isFixed ? 0 : spreadOfRuns(a, b, start, right);
      }
    }
  };
  return {
    row: (row) => {
      if (row % dotTileRows === 0) fill(row, Math.min(row + dotTileRows, x.length));
      return { ...tile, start: (row % dotTileRows) * count };
    },
  };
}

type Starts = readonly [x: number, y: number, z: number];
type Places = readonly [number, number];

function fillExact(
  a: OperandRuns,
  b: OperandRuns,
  [x, y, z]: Starts,
  [first, second]: Places,
  { sums, magnitudes }: Tile,
): void {
  const [left, right, count] = [a.numbers, b.numbers, a.count];
  let sum = 0;
  let size = 0;
  let otherSum = 0;
  let otherSize = 0;
  for (let k = 0; k < count; k++) {
    const p = left[x + k] ?? NaN;
    const product = p * (right[y + k] ?? NaN);
    const other = p * (right[z + k] ?? NaN);
    sum += product;
    size += Math.abs(product);
    otherSum += other;
    otherSize += Math.abs(other);
  }
  sums[first] = sum;
  sums[second] = otherSum;
  magnitudes[first] = size;
  magnitudes[second] = otherSize;
}

/** Of operands of which the right ones are exact: those of the weights of a model. */
function fillLeftBounded(a: OperandRuns, b: OperandRuns, [x, y, z]: Starts, [first, second]: Places, tile: Tile): void {
  const [left, right, count] = [a.numbers, b.numbers, a.count];
  const leftBounds = a.value.bounds;
  let sum = 0;
  let size = 0;
  let spread = 0;
  let otherSum = 0;
  let otherSize = 0;
  let otherSpread = 0;
  for (let k = 0; k < count; k++) {
    const p = left[x + k] ?? NaN;
    const u = leftBounds[x + k] ?? NaN;
    const q = right[y + k] ?? NaN;
    const r = right[z + k] ?? NaN;
    const product = p * q;
    const other = p * r;
    sum += product;
    size += Math.abs(product);
    spread += Math.abs(q) * u;
    otherSum += other;
    otherSize += Math.abs(other);
    otherSpread += Math.abs(r) * u;
  }
  tile.sums[first] = sum;
  tile.sums[second] = otherSum;
  tile.magnitudes[first] = size;
  tile.magnitudes[second] = otherSize;
  tile.spreads[first] = spread;
  tile.spreads[second] = otherSpread;
}

function fillBounded(a: OperandRuns, b: OperandRuns, [x, y, z]: Starts, [first, second]: Places, tile: Tile): void {
  const [left, right, count] = [a.numbers, b.numbers, a.count];
  const [leftBounds, rightBounds] = [a.value.bounds, b.value.bounds];
  let sum = 0;
  let size = 0;
  let spread = 0;
  let otherSum = 0;
  let otherSize = 0;
  let otherSpread = 0;
  for (let k = 0; k < count; k++) {
    const p = left[x + k] ?? NaN;
    const u = leftBounds[x + k] ?? NaN;
    const furthest = Math.abs(p) + u;
    const q = right[y + k] ?? NaN;
    const v = rightBounds[y + k] ?? NaN;
    const r = right[z + k] ?? NaN;
    const w = rightBounds[z + k] ?? NaN;
    const product = p * q;
    const other = p * r;
    sum += product;
    size += Math.abs(product);
    spread += furthest * v + Math.abs(q) * u;
    otherSum += other;
    otherSize += Math.abs(other);
    otherSpread += furthest * w + Math.abs(r) * u;
  }
  tile.sums[first] = sum;
  tile.sums[second] = otherSum;
  tile.magnitudes[first] = size;
  tile.magnitudes[second] = otherSize;
  tile.spreads[first] = spread;
  tile.spreads[second] = otherSpread;
}

const fillPairs = { none: fillExact, left: fillLeftBounded, both: fillBounded } as const;

/** Whether an element of two runs may be 0 though it is not, or has no bound. */
function openRuns(a: OperandRuns, b: OperandRuns): (x: number, y: number) => boolean {
  const [left, right] = [new Map<number, boolean>(), new Map<number, boolean>()];
  const isOpen = ({ numbers, value, count }: OperandRuns, start: number): boolean => {
    for (let i = start; i < start + count; i++) {
      const bound = value.bounds[i] ?? NaN;
      if (bound > 0 && (bound === Infinity || Math.abs(numbers[i] ?? NaN) <= bound)) return true;
    }
    return false;
  };
  const known = (runs: OperandRuns, start: number, found: Map<number, boolean>): boolean => {
    const open = found.get(start) ?? isOpen(runs, start);
    found.set(start, open);
    return open;
  };
  return (x, y) => known(a, x, left) || known(b, y, right);
}

/** The largest change of the sum of products when their operands change, some of which are infinite or NaN. */
function spreadOfRuns(a: OperandRuns, b: OperandRuns, x: number, y: number): number {
  const [left, right, count] = [a.numbers, b.numbers, a.count];
  const [leftBounds, rightBounds] = [a.value.bounds, b.value.bounds];
  let spread = 0;
  for (let k = 0; k < count; k++) {
    const p = Math.abs(left[x + k] ?? NaN);
    const q = Math.abs(right[y + k] ?? NaN);
    const u = leftBounds[x + k] ?? NaN;
    const v = rightBounds[y + k] ?? NaN;
    if (u === Infinity || v === Infinity) return Infinity;
    if (p < Infinity && q < Infinity) spread += (p + u) * v + q * u;
    // NaN and infinity do not change, unless the sign of the other operand may.
    else if ((u > 0 && p <= u) || (v > 0 && q <= v)) return Infinity;
  }
  return spread;
}
