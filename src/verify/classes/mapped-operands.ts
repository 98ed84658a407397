/** Whether operands of a command go to those of its image. */
import type { Operand } from "../../commands/kernel.ts";
import { sameNumbers, type View } from "../../commands/view.ts";
import { at } from "../../support/invariant.ts";
import { type Mapping, sameBuffer } from "./mapping.ts";
import { sameForm } from "./moved-regions.ts";

type Refs = readonly { readonly buffer: number; readonly offset: number }[];

/**
 * The images in the order of what they are images of; unchanged if that is not a matter of order. Of slices of one
 * buffer, each goes to where earlier commands moved it.
 */
export function turned(mapping: Mapping, operands: readonly Operand[], a: Refs, b: Refs): Refs {
  const left = new Set(b.keys());
  const order = a.map(({ buffer, offset }, i) => {
    const image = mapping.regions.imageOf(buffer, at(operands, i), offset);
    const found = [...left].find(
      (j) =>
        sameBuffer(mapping, buffer, at(b, j).buffer) &&
        sameForm(at(operands, i), at(operands, j)) &&
        (image === undefined || image === at(b, j).offset),
    );
    if (found !== undefined) left.delete(found);
    return found;
  });
  return order.every((j) => j !== undefined) && left.size === 0 ? order.map((j) => at(b, j)) : b;
}

/**
 * Whether operands in one buffer are as far apart as their images, which decides if they may share bytes. Among the
 * first `read` it does not matter.
 */
export function keepDistances(a: Refs, b: Refs, read = 0): boolean {
  return a.every(({ buffer, offset }, i) => {
    const moved = at(b, i).offset - offset;
    return (
      i < read || a.every((other, j) => j >= i || other.buffer !== buffer || at(b, j).offset - other.offset === moved)
    );
  });
}

export function sameOperands(mapping: Mapping, operands: readonly Operand[], a: Refs, b: Refs): boolean {
  if (a.length !== operands.length || b.length !== operands.length) return false;
  for (let i = 0; i < a.length; i++) {
    const [own, image] = [at(a, i), at(b, i)];
    if (!sameBuffer(mapping, own.buffer, image.buffer)) return false;
    if (!mapping.regions.note(own.buffer, at(operands, i), own.offset, image.offset)) return false;
  }
  return true;
}

export function sameView(mapping: Mapping, a: View | null, b: View | null): boolean {
  if (a === null || b === null) return a === b;
  const alike = a.dtype === b.dtype && sameNumbers(a.shape, b.shape) && sameNumbers(a.strides, b.strides);
  return alike && sameBuffer(mapping, a.buffer, b.buffer) && mapping.regions.note(a.buffer, a, a.offset, b.offset);
}
