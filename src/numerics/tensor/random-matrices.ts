/**
 * Random operands of any size, whose elements can be computed without storing them. A matrix is a range of one repeated
 * block of random numbers, with its own start. The block has a prime number of elements, so no two rows of a matrix are
 * equal. GEMMs of zeros or small integers would run faster than real ones.
 */
import type { DType } from "../dtype.ts";
import { emptyTensor, tensorBytes, elementsOf } from "./host-tensor.ts";
import { createRandom } from "../../support/random.ts";

const pieceLength = 250_007;

export interface Matrices {
  readonly dtype: DType;
  /** Bytes of an element. */
  readonly width: number;
  /** The bytes of the repeated block. */
  readonly piece: Uint8Array;
  /** The position in the block at which the matrix named `key` begins. */
  start(key: string): number;
  /** Writes elements `first` to `first + count` of the matrix named `key` to `bytes`, from byte `offset` on. */
  fill(key: string, first: number, count: number, bytes: Uint8Array, offset: number): void;
  /** Returns elements of a matrix by their position in row-major order. */
  reader(key: string): (index: number) => number;
}

/**
 * Uniform in [-1, 1), rounded to the dtype, times `scale`, a power of two. The same seed gives the same matrices in
 * every process.
 */
export function createMatrices(dtype: DType, seed: number, scale = 1): Matrices {
  const piece = emptyTensor(dtype, [pieceLength]);
  const elements = elementsOf(piece.dtype, piece.data);
  const random = createRandom(seed);
  for (let i = 0; i < pieceLength; i++) {
    elements.set(i, 2 * random.float() - 1);
    if (scale !== 1) elements.set(i, Number(elements.get(i)) * scale);
  }
  const values = new Float64Array(pieceLength);
  for (let i = 0; i < pieceLength; i++) values[i] = Number(elements.get(i));
  const source = tensorBytes(piece);
  const width = source.length / pieceLength;
  return {
    dtype,
    width,
    piece: source,
    start: startOf,
    fill: (key, first, count, bytes, offset) => {
      const end = offset + count * width;
      let from = ((startOf(key) + first) % pieceLength) * width;
      for (let done = offset; done < end;) {
        const part = Math.min(end - done, source.length - from);
        bytes.set(source.subarray(from, from + part), done);
        done += part;
        from = 0;
      }
    },
    reader: (key) => {
      const start = startOf(key);
      return (index) => values[(start + index) % pieceLength] ?? NaN;
    },
  };
}

/** FNV-1a of the name. */
function startOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  return (hash >>> 0) % pieceLength;
}
