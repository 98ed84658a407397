/** The alignment of an address, which kernels and algorithms depend on. */

/** The largest power of two, at most 256, that divides the address. */
export function alignmentOf(address: number): number {
  let alignment = 256;
  while (address % alignment !== 0) alignment /= 2;
  return alignment;
}
