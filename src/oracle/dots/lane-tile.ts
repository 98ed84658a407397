/** Tiles of float-dots, in WebAssembly. */
import { at, invariant } from "../../support/invariant.ts";
import { type Code, encodeModule, type WasmFunction } from "../../support/wasm/encoding.ts";
import { createFunctionWriter } from "../../support/wasm/function-writer.ts";
import { advance, countDown, get, load, set, store, vector } from "../../support/wasm/instructions.ts";
import { createWasmMemory, instantiateWasm } from "../../support/webassembly.ts";
import { type DotRows, type OperandRuns, type Tile, dotTileRows } from "./operand-runs.ts";

/** Fills the rows `first` to `last` of a tile. */
export function tileInLanes(
  a: OperandRuns,
  b: OperandRuns,
  { x, y, step, count }: DotRows,
  errors: ErrorsOf,
  { sums, magnitudes, spreads }: Tile,
): (first: number, last: number) => void {
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
