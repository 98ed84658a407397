/** Tiles of float-dots, in WebAssembly. */
import { at, invariant } from "../../support/invariant.ts";
import { createWasmMemory, instantiateWasm } from "../../support/webassembly.ts";
import { callResults, type ErrorsOf, laneModule, packedColumns } from "./lane-module.ts";
import type { DotRows, Runs } from "./operand-runs.ts";
import { type Tile, tileRows } from "./tile.ts";

/** Fills the rows `first` to `last` of a tile. */
export function tileInLanes(
  a: Runs,
  b: Runs,
  { x, y, step, count }: DotRows,
  errors: ErrorsOf,
  { sums, magnitudes, spreads }: Tile,
): (first: number, last: number) => void {
  const products = a.count;
  const rows = tileRows * products;
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
