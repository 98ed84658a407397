/**
 * Copies a strided box of bytes between two byte arrays. Trailing axes that are contiguous on both sides are copied as one run;
 * short runs byte by byte, because `TypedArray.set` costs more than it saves below about 64 bytes.
 */
export interface BoxSide {
  readonly bytes: Uint8Array;
  /** In bytes. */
  readonly offset: number;
  /** In bytes, one per axis of the box. */
  readonly strides: readonly number[];
}

const shortRun = 64;

/** `shape` counts elements of `elementBytes` bytes. The sides must not overlap. */
export function copyBox(from: BoxSide, to: BoxSide, shape: readonly number[], elementBytes: number): void {
  let run = elementBytes;
  let rank = shape.length;
  while (rank > 0) {
    const extent = shape[rank - 1] ?? 1;
    const joins = from.strides[rank - 1] === run && to.strides[rank - 1] === run;
    if (extent !== 1 && !joins) break;
    run *= extent;
    rank--;
  }
  const walk = (axis: number, source: number, target: number): void => {
    if (axis === rank) {
      if (run < shortRun) for (let i = 0; i < run; i++) to.bytes[target + i] = from.bytes[source + i] ?? 0;
      else to.bytes.set(from.bytes.subarray(source, source + run), target);
      return;
    }
    const extent = shape[axis] ?? 1;
    const sourceStride = from.strides[axis] ?? 0;
    const targetStride = to.strides[axis] ?? 0;
    for (let i = 0; i < extent; i++) walk(axis + 1, source + i * sourceStride, target + i * targetStride);
  };
  walk(0, from.offset, to.offset);
}
