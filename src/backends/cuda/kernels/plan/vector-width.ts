/**
 * How many neighbouring elements a thread takes at once, so that contiguous operands move in accesses of 16 bytes. It
 * is a power of two that divides the extent of the innermost loop, and every contiguous access starts at a multiple of
 * its bytes.
 */
import { type Affine, type Atom, coefficientOf, loopsBehind } from "../../../../kernels/nests/affine.ts";
import type { Access, Loop, NestMemory } from "../../../../kernels/nests/nest.ts";
import { elementBytes } from "../text/element-text.ts";

/** The alignment of the memory's address in bytes, a power of two. */
export type AlignmentOf = (memory: NestMemory) => number;

/** How an access moves along the vectorised loop; `divided` moves unevenly, through a quotient, a
 * remainder or a loaded index. */
export type AccessForm = "contiguous" | "same" | "strided" | "divided";

const accessBytes = 16;
/** Elements of a vector at most. */
export const widest = 8;

export function accessForm({ offset }: Access, atoms: readonly Atom[], loop: Loop): AccessForm {
  return indexForm(offset, atoms, loop);
}

export function indexForm(index: Affine, atoms: readonly Atom[], loop: Loop): AccessForm {
  const others = index.terms.filter(({ atom }) => atom !== loop.atom);
  if (others.some(({ atom }) => loopsBehind(atoms, atom).includes(loop.atom))) return "divided";
  const step = coefficientOf(index, loop.atom);
  return step === 0 ? "same" : step === 1 ? "contiguous" : "strided";
}

/**
 * `loads` may have any form but `divided`; `stores` must be contiguous for a width above 1. `smallest` is the size in
 * bytes of the narrowest element that fills an access.
 */
export function vectorWidth(
  loads: readonly Access[],
  stores: readonly Access[],
  atoms: readonly Atom[],
  loop: Loop | undefined,
  alignmentOf: AlignmentOf,
  smallest = Math.min(...[...loads, ...stores].map(({ dtype }) => elementBytes(dtype))),
): number {
  if (loop === undefined) return 1;
  const formOf = (access: Access): AccessForm => accessForm(access, atoms, loop);
  if (stores.some((access) => formOf(access) !== "contiguous")) return 1;
  if (loads.some((access) => formOf(access) === "divided")) return 1;
  const contiguous = [...loads, ...stores].filter((access) => formOf(access) === "contiguous");
  if (contiguous.length === 0) return 1;
  let width = Math.min(widest, accessBytes / smallest);
  while (
    width > 1 &&
    !(loop.extent % width === 0 && contiguous.every((access) => isAligned(access, loop, width, alignmentOf)))
  ) {
    width /= 2;
  }
  return width;
}

function isAligned({ dtype, offset, memory }: Access, loop: Loop, width: number, alignmentOf: AlignmentOf): boolean {
  const bytes = elementBytes(dtype);
  const needed = Math.min(accessBytes, width * bytes);
  const others = offset.terms.filter(({ atom }) => atom !== loop.atom);
  return [alignmentOf(memory), offset.constant * bytes, ...others.map(({ coefficient }) => coefficient * bytes)].every(
    (count) => count % needed === 0,
  );
}
