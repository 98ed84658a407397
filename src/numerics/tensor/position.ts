/** The index along each axis of the element at a row-major position. */
export function positionOf(index: number, shape: readonly number[]): readonly number[] {
  let rest = index;
  return shape
    .toReversed()
    .map((extent) => {
      const position = rest % extent;
      rest = Math.floor(rest / extent);
      return position;
    })
    .toReversed();
}
