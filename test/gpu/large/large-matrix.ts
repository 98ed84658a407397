/**
 * Matrices of gigabytes as functions of the position: a drawn piece, repeated row by row. Its length is a prime, so
 * that no two rows are equal, and any part can be made on any rank without the rest.
 */
import { dtypes } from "../../../src/numerics/dtype.ts";
import { emptyTensor, type Tensor, tensorBytes, elementsOf } from "../../../src/numerics/tensor/host-tensor.ts";
import { at, invariant } from "../../../src/support/invariant.ts";
import { createRandom, type Random } from "../../../src/support/random.ts";

export type LargeDType = "float" | "bfloat16";

export interface LargeMatrix {
  readonly dtype: LargeDType;
  readonly rows: number;
  readonly columns: number;
  /** Element (i, j) is that at i * columns + j, modulo the length. */
  readonly piece: Tensor;
  /** The same as numbers. */
  readonly numbers: Float64Array;
}

/** `count` places from `start` on. */
export interface Range {
  readonly start: number;
  readonly count: number;
}

/** Rows in the order in which a rank holds them, and what it holds of each. */
export interface MatrixPart {
  readonly rows: readonly Range[];
  readonly columns: Range;
}

/** The largest prime below 2^20: more than a matrix has rows, so that all begin at different places of the piece. */
const pieceLength = 1_048_573;

/** `draw` gives numbers that the dtype holds exactly, or that it rounds. */
export function drawMatrix(
  dtype: LargeDType,
  [rows, columns]: readonly [number, number],
  seed: number,
  draw: (random: Random) => number,
): LargeMatrix {
  invariant(rows < pieceLength && columns % pieceLength !== 0, "rows that differ", { rows, columns });
  const random = createRandom(seed);
  const piece = emptyTensor(dtype, [pieceLength]);
  const elements = elementsOf(piece.dtype, piece.data);
  for (let i = 0; i < pieceLength; i++) elements.set(i, draw(random));
  return {
    dtype,
    rows,
    columns,
    piece,
    numbers: Float64Array.from({ length: pieceLength }, (_, i) => Number(elements.get(i))),
  };
}

/** The part as a row-major tensor of the given shape. */
export function partOf({ dtype, columns, piece }: LargeMatrix, part: MatrixPart, shape: readonly number[]): Tensor {
  const tensor = emptyTensor(dtype, shape);
  const { bytes } = dtypes[dtype];
  const source = tensorBytes(piece);
  const target = tensorBytes(tensor);
  let filled = 0;
  const fill = (from: number, elements: number): void => {
    let start = (from % pieceLength) * bytes;
    for (let left = elements * bytes; left > 0; start = 0) {
      const run = Math.min(left, source.length - start);
      target.set(source.subarray(start, start + run), filled);
      filled += run;
      left -= run;
    }
  };
  for (const { start, count } of part.rows) {
    if (part.columns.count === columns) fill(start * columns, count * columns);
    else for (let row = start; row < start + count; row++) fill(row * columns + part.columns.start, part.columns.count);
  }
  invariant(filled === target.length, "the shape has the part's elements", { shape, filled });
  return tensor;
}

/** One row as numbers. */
export function readRow({ columns, numbers }: LargeMatrix, row: number, into: Float64Array): void {
  let place = (row * columns) % pieceLength;
  for (let j = 0; j < columns; j++) {
    into[j] = at(numbers, place);
    place = place + 1 === pieceLength ? 0 : place + 1;
  }
}
