/**
 * Symbolic addresses: a space of the memory that a rank binds before it runs, and a place in it. Offsets are in bytes.
 * Spaces begin at multiples of 256, except the caller's tensors, which begin at multiples of `tensorAlignment`.
 */

/**
 * in, out: a tensor of the caller, by its position among the list's bound tensors. temporary: the rank's own arena.
 * symmetric: a rank's arena that peers map. word: a slot that `rank` waits on, four bytes. gate: a word that
 * counts blocks of a kernel, in eight bytes. progress: the word of host memory in which a stream reports. scratch,
 * workspace: memory of a stream, for kernels and for libraries.
 */
export type Address =
  | { readonly space: "in" | "out"; readonly tensor: number; readonly offset: number }
  | { readonly space: "temporary"; readonly offset: number }
  | { readonly space: "symmetric"; readonly rank: number; readonly offset: number }
  | Word
  | { readonly space: "gate"; readonly index: number }
  | ProgressWord
  | { readonly space: "scratch"; readonly stream: number; readonly offset: number }
  | { readonly space: "workspace"; readonly stream: number };

export interface Word {
  readonly space: "word";
  readonly rank: number;
  readonly index: number;
}

export interface ProgressWord {
  readonly space: "progress";
  readonly stream: number;
}

/** An address that bytes can be added to. */
export type AddressPlace = Extract<Address, { readonly offset: number }>;
/** Where a tensor lies. */
export type TensorPlace = Exclude<AddressPlace, { readonly space: "scratch" }>;

/** No access of a kernel is wider, so a higher alignment means nothing to a plan. */
export const tensorAlignment = 16;

/** The largest power of two, at most `tensorAlignment`, that divides the address. */
export function alignmentOf({ offset }: AddressPlace): number {
  let alignment = tensorAlignment;
  while (offset % alignment !== 0) alignment /= 2;
  return alignment;
}

export function plus<P extends AddressPlace>(place: P, bytes: number): P {
  return bytes === 0 ? place : { ...place, offset: place.offset + bytes };
}

export function isSameWord(a: Word, b: Word): boolean {
  return a.rank === b.rank && a.index === b.index;
}
