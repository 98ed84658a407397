/**
 * Reshapes that each device does with its own elements: both sides have the same parts in the same order, wherever the
 * axes begin.
 *
 *   [DIDy 2, i{8} split outer 2 DIDx] -> [i{16} split outer 2 DIDy, then outer 2 DIDx]
 *
 * Each device has four elements that lie together, before and after.
 */
import { isDID, type Tensor } from "../../ir/domain.ts";
import { keepShares, layout, type Layout, layoutOf, sameLayout } from "../../ir/layout.ts";
import type { Op } from "../../ir/ops/op.ts";
import { type CutAxis, isEven, type Part, withTypes } from "../../ir/parts.ts";
import { constantValue, foldMul } from "../../ir/scalar/fold.ts";
import { constant, type Scalar } from "../../ir/scalar/scalar.ts";
import { at } from "../../support/invariant.ts";
import { streamPart } from "../../ir/stream.ts";

export function isLocalReshape(op: Op, tensors: readonly Tensor[]): boolean {
  if (op.kind !== "Reshape") return false;
  const [before, after] = [at(tensors, at(op.inputs, 0)), at(tensors, op.output)];
  const to = layoutOf(after);
  if (to === null || before.mesh?.equals(to.mesh) !== true || streamPart(after) !== null) return false;
  const axes = reshapedAxes(
    before,
    to.axes.map(({ extent }) => extent),
  );
  // A mesh dimension of one device cuts nothing.
  const cutting = (each: Layout): Layout => keepShares(each, ({ devices }) => devices > 1);
  return axes !== null && sameLayout(cutting(layout(to.mesh, axes)), cutting(to));
}

/**
 * The operand's parts on axes of the given extents, which may cut parts of no type in two. Null if they do not fit, or
 * are uneven or symbolic, or in chunks.
 */
export function reshapedAxes(operand: Tensor, extents: readonly Scalar[]): readonly CutAxis[] | null {
  const from = layoutOf(operand);
  const isKnown = from?.axes.every((cut) => constantValue(cut.extent) !== null && isEven(cut)) === true;
  if (!isKnown || streamPart(operand) !== null) return null;
  const left = from.axes.flatMap(({ parts }) => parts);
  const axes: CutAxis[] = [];
  for (const extent of extents) {
    let missing = constantValue(extent);
    const own: Part[] = [];
    while (missing !== null && (missing > 1 || isOfOneDevice(left[0]))) {
      const next = left.shift();
      if (next === undefined) return null;
      const count = constantValue(next.extent) ?? 0;
      const taken = isDID(next.type) ? count : greatestCommonDivisor(count, missing);
      if (missing % taken !== 0 || (taken === 1 && count > 1)) return null;
      if (taken < count) left.unshift({ ...next, extent: constant(count / taken) });
      own.push({ ...next, extent: constant(taken) });
      missing /= taken;
    }
    if (missing === null) return null;
    axes.push(evenAxis(extent, own));
  }
  return left.every(({ extent }) => constantValue(extent) === 1) ? axes : null;
}

function isOfOneDevice(part: Part | undefined): boolean {
  return part !== undefined && isDID(part.type) && constantValue(part.extent) === 1;
}

function evenAxis(extent: Scalar, parts: readonly Part[]): CutAxis {
  const strides = parts.map((_, i) =>
    parts.slice(i + 1).reduce<Scalar>((stride, part) => foldMul(stride, part.extent), constant(1)),
  );
  const cut = { extent, parts: parts.map((part, i): Part => ({ ...part, stride: at(strides, i) })) };
  return withTypes(cut, isDID);
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
