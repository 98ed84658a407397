/** Matrices of floats without a pattern that rounding could hide. */
import { Tensor } from "@braid-compiler/braid";

export type Matrix = readonly (readonly number[])[];

export const numbersOf = (tensor: Tensor): readonly number[] => Tensor.values(tensor).map(Number);

export function wave(rows: number, columns: number, seed: number, scale: number): Matrix {
  const all = Array.from({ length: rows * columns }, (_, i) => scale * Math.sin(1.7 * i + ((0.3 * i * i) % 7) + seed));
  return Array.from({ length: rows }, (_, row) => all.slice(row * columns, (row + 1) * columns));
}
