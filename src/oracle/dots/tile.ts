/** Sums of products of some rows of a result, in row-major order. */

/** Rows that are computed together, so that what they read stays in the cache. */
export const tileRows = 64;

export interface Tile {
  readonly sums: Float64Array;
  /** Of the magnitudes of the products. NaN or Infinity if an operand is. */
  readonly magnitudes: Float64Array;
  /** The largest changes of the sums. */
  readonly spreads: Float64Array;
}
