/**
 * Sums of products of floats, in double: the values, the sums of the products' magnitudes, and how far the operands' own
 * errors move them. Nearly all of the oracle's time is spent here: large products run in WebAssembly.
 */
import { at, invariant } from "../../support/invariant.ts";
import { type DotRows, type OperandRuns, type Tile, dotTileRows } from "./operand-runs.ts";
import { type Code, encodeModule, type WasmFunction } from "../../support/wasm/encoding.ts";
import { createFunctionWriter } from "../../support/wasm/function-writer.ts";
import { advance, countDown, get, load, set, store, vector } from "../../support/wasm/instructions.ts";
import { createWasmMemory, instantiateWasm } from "../../support/webassembly.ts";

/** Element `start + column` of each of a tile's arrays is a column's. */
export interface DotRow extends Tile {
  readonly start: number;
}

export interface Dots {
  /** The products of the run of `a` of a row, with `count` runs of `b`. */
  readonly row: (row: number) => DotRow;
}

/** Below that many products, compiling the module takes longer than the loops. */
const fewProducts = 2 ** 17;

/** Fills the rows `first` to `last` of a tile. */
type FillTile = (first: number, last: number) => void;

/** Rows are asked for in order. Runs are contiguous. */
export function createDots(a: OperandRuns, b: OperandRuns, { x, y, step, count }: DotRows): Dots {
  const [isLeftExact, isRightExact] = [a, b].map(({ value }) => value.bounds.every((bound) => bound === 0));
  const isExact = isLeftExact === true && isRightExact === true;
  const size = Math.min(dotTileRows, x.length) * count;
  const tile = { sums: new Float64Array(size), magnitudes: new Float64Array(size), spreads: new Float64Array(size) };
  const errors = isExact ? "none" : isRightExact === true ? "left" : "both";
  const isLarge = x.length * count * a.count >= fewProducts;
  const fillTile = isLarge
    ? tileInLanes(a, b, { x, y, step, count }, errors, tile)
    : tileInLoops(a, b, { x, y, step, count }, isExact, tile);
  const isOpen = openRuns(a, b);
  const fill = (first: number, last: number): void => {
    fillTile(first, last);
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

/** Of exact operands, spreads stay 0. */
function tileInLoops(
  a: OperandRuns,
  b: OperandRuns,
  { x, y, step, count }: DotRows,
  isExact: boolean,
  { sums, magnitudes, spreads }: Tile,
): FillTile {
  const [left, right, products] = [a.numbers, b.numbers, a.count];
  const [leftBounds, rightBounds] = [a.value.bounds, b.value.bounds];
  return (first, last) => {
    for (let row = first; row < last; row++) {
      const start = at(x, row);
      for (let column = 0; column < count; column++) {
        const other = at(y, row) + column * step;
        let sum = 0;
        let size = 0;
        let spread = 0;
        for (let k = 0; k < products; k++) {
          const p = left[start + k] ?? NaN;
          const q = right[other + k] ?? NaN;
          const product = p * q;
          sum += product;
          size += Math.abs(product);
          if (isExact) continue;
          const u = leftBounds[start + k] ?? NaN;
          spread += (Math.abs(p) + u) * (rightBounds[other + k] ?? NaN) + Math.abs(q) * u;
        }
        const place = (row - first) * count + column;
        sums[place] = sum;
        magnitudes[place] = size;
        spreads[place] = spread;
      }
    }
  };
}

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

/* Tiles of float-dots, in WebAssembly. */

function tileInLanes(
  a: OperandRuns,
  b: OperandRuns,
  { x, y, step, count }: DotRows,
  errors: ErrorsOf,
  { sums, magnitudes, spreads }: Tile,
): FillTile {
  const products = a.count;
  const rows = dotTileRows * products;
  const columns = packedColumns * products;
  const memory = createWasmMemory(8 * (2 * rows + 2 * columns + callResults));
  const dots = instantiateWasm(laneModule(), memory)[errors];
  invariant(dots !== undefined, "the module has a function for each", { errors });
  const doubles = new Float64Array(memory.buffer);
  const [leftErrors, right, rightErrors, results] = [rows, 2 * rows, 2 * rows + columns, 2 * (rows + columns)];
  const pack = (start: number, from: Float64Array, to: number): void => {
    for (let column = 0; column < packedColumns; column++) {
      // Those after the last are not read.
      const own = start + Math.min(column * step, b.numbers.length - products - start);
      for (let k = 0; k < products; k++) doubles[to + k * packedColumns + column] = from[own + k] ?? NaN;
    }
  };
  return (first, last) => {
    for (let row = first; row < last; row++) {
      const [start, place] = [at(x, row), (row - first) * products];
      doubles.set(a.numbers.subarray(start, start + products), place);
      if (errors !== "none") doubles.set(a.value.bounds.subarray(start, start + products), leftErrors + place);
    }
    for (let block = 0; block < count; block += packedColumns) {
      const end = Math.min(block + packedColumns, count);
      let packed = -1;
      for (let row = first; row < last; row++) {
        const start = at(y, row) + block * step;
        if (start !== packed) {
          pack(start, b.numbers, right);
          if (errors === "both") pack(start, b.value.bounds, rightErrors);
          packed = start;
        }
        const left = (row - first) * products;
        dots(8 * left, 8 * (leftErrors + left), 8 * right, 8 * rightErrors, 8 * results, products);
        const place = (row - first) * count + block;
        for (let column = 0; column < end - block; column++) {
          const found = results + column;
          sums[place + column] = doubles[found] ?? NaN;
          magnitudes[place + column] = doubles[found + packedColumns] ?? NaN;
          if (errors !== "none") spreads[place + column] = doubles[found + 2 * packedColumns] ?? NaN;
        }
      }
    }
  };
}

// The loops of float-dots in WebAssembly: the same operations in the same order, for eight columns at once, and so the
// same bits. A row of `a` is read as it lies. Columns of `b` are packed, element k of all eight side by side.

/** Which of the operands' errors are not 0. */
type ErrorsOf = "none" | "left" | "both";

/** Columns of a call. */
const packedColumns = 8;

const vectors = packedColumns / 2;
const vectorBytes = 16;
const elementBytes = 8;

/** Doubles that a call writes. */
const callResults = 3 * packedColumns;

/**
 * One function per `ErrorsOf`. Its parameters are addresses, and the number of products of a sum, at least one: a row
 * of `a` and its errors, packed columns of `b` and their errors, and where eight sums, eight magnitudes and eight spreads
 * go. Errors that are 0 are not read, and their spreads are not written.
 */
function laneModule(): Uint8Array {
  return encodeModule([dotsOf("none"), dotsOf("left"), dotsOf("both")], "unshared");
}

const [leftAt, leftErrorAt, rightAt, rightErrorAt, resultAt, count] = [0, 1, 2, 3, 4, 5] as const;

function dotsOf(errors: ErrorsOf): WasmFunction {
  const writer = createFunctionWriter(6);
  const lanes = (): number => writer.local("v128");
  const each = Array.from({ length: vectors }, (_, i) => ({
    offset: i * vectorBytes,
    sum: lanes(),
    magnitude: lanes(),
    spread: lanes(),
  }));
  const [p, u, furthest, q, size, product] = [lanes(), lanes(), lanes(), lanes(), lanes(), lanes()];
  const splat = (pointer: number): Code => load("v128.load64_splat", { pointer, offset: 0 });
  const add = (local: number, term: Code): Code => set(local, vector("f64x2.add", get(local), term));
  const body: Code[] = [set(p, splat(leftAt))];
  if (errors !== "none") body.push(set(u, splat(leftErrorAt)));
  if (errors === "both") body.push(set(furthest, vector("f64x2.add", vector("f64x2.abs", get(p)), get(u))));
  for (const { offset, sum, magnitude, spread } of each) {
    body.push(
      set(q, load("v128.load", { pointer: rightAt, offset })),
      set(product, vector("f64x2.mul", get(p), get(q))),
      add(sum, get(product)),
      add(magnitude, vector("f64x2.abs", get(product))),
    );
    if (errors === "none") continue;
    body.push(set(size, vector("f64x2.mul", vector("f64x2.abs", get(q)), get(u))));
    const error = vector("f64x2.mul", get(furthest), load("v128.load", { pointer: rightErrorAt, offset }));
    body.push(add(spread, errors === "left" ? get(size) : vector("f64x2.add", error, get(size))));
  }
  const step = packedColumns * elementBytes;
  body.push(advance(leftAt, elementBytes), advance(rightAt, step));
  if (errors !== "none") body.push(advance(leftErrorAt, elementBytes));
  if (errors === "both") body.push(advance(rightErrorAt, step));
  writer.emit(countDown(count, body.flat()));
  for (const { offset, sum, magnitude, spread } of each) {
    const results = errors === "none" ? [sum, magnitude] : [sum, magnitude, spread];
    results.forEach((local, i) => {
      writer.emit(store({ pointer: resultAt, offset: offset + i * step }, get(local)));
    });
  }
  return { name: errors, parameters: 6, locals: writer.locals(), body: writer.body() };
}
