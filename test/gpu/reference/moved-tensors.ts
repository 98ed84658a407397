/**
 * Expectations for large tensors that are only moved, or added up over the devices: whole numbers, made by repeating a
 * drawn piece.
 */
import { emptyTensor, type Tensor } from "../../../src/numerics/tensor/host-tensor.ts";
import { at, invariant } from "../../../src/support/invariant.ts";
import type { Expectation } from "../expectation.ts";
import { drawMatrix, partOf } from "../large/large-matrix.ts";

const sets = 2;

/** float, [rows, columns]; other numbers for another seed. */
function wholeNumbers(rows: number, columns: number, seed: number): Tensor {
  const matrix = drawMatrix("float", [rows, columns], seed, (random) => random.integer(17) - 8);
  const part = { rows: [{ start: 0, count: rows }], columns: { start: 0, count: columns } };
  return partOf(matrix, part, [rows, columns]);
}

/** Two sets of inputs [rows, columns], each with what `expected` makes of them, in every bit. */
export function movedExpectations(
  rows: number,
  columns: number,
  expected: (input: Tensor) => Tensor,
): readonly Expectation[] {
  return Array.from({ length: sets }, (_, seed) => {
    const input = wholeNumbers(rows, columns, seed + 1);
    return { mode: "small-integers" as const, inputs: [input], outputs: [expected(input)], bounds: [null] };
  });
}

/** The sum over the rows of a float tensor. */
export function sumOfRows({ shape, data }: Tensor): Tensor {
  const columns = at(shape, 1);
  const sum = emptyTensor("float", [columns]);
  invariant(sum.dtype === "float" && data instanceof Float32Array, "float32 numbers");
  for (let row = 0; row < at(shape, 0); row++) {
    for (let j = 0; j < columns; j++) sum.data[j] = (sum.data[j] ?? NaN) + (data[row * columns + j] ?? NaN);
  }
  return sum;
}
