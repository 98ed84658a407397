/**
 * Reshapes that each device does with its own elements: both sides have the same parts in the same order, wherever the
 * axes begin.
 *
 *   [DIDy 2, i{8} split outer 2 DIDx] -> [i{16} split outer 2 DIDy, then outer 2 DIDx]
 *
 * Each device has four elements that lie together, before and after.
 */
import { axisParts } from "../../ir/axis-shards.ts";
import { type ParallelType, type Tensor, withoutReductions } from "../../ir/domain.ts";
import type { Op } from "../../ir/ops/op.ts";
import { constantValue } from "../../ir/scalar/fold.ts";
import type { Scalar } from "../../ir/scalar/scalar.ts";
import { at } from "../../support/invariant.ts";

export function isLocalReshape(op: Op, tensors: readonly Tensor[]): boolean {
  if (op.kind !== "Reshape") return false;
  const [before, after] = [at(tensors, at(op.inputs, 0)), at(tensors, op.output)];
  if (before.mesh === null || after.mesh?.equals(before.mesh) !== true) return false;
  const [from, to] = [partsOf(before), partsOf(after)];
  return (
    from !== null &&
    to !== null &&
    from.length === to.length &&
    from.every(({ extent, type }, i) => extent === to[i]?.extent && type === to[i].type)
  );
}

/** Outer parts before inner ones. */
export interface Part {
  readonly extent: number;
  readonly type: ParallelType;
}

/** The parts of all axes, outermost first, with neighbours of no type as one. Null if parts are uneven or symbolic. */
function partsOf({ domain }: Tensor): readonly Part[] | null {
  const found: Part[] = [];
  for (const axis of withoutReductions(domain.logical)) {
    const parts = axisParts(domain, axis);
    let product = 1;
    for (const { extent, parallelType: type } of parts) {
      const size = constantValue(extent);
      if (size === null || type === "Stream") return null;
      product *= size;
      if (size === 1 && type === "Serial") continue;
      const last = found.at(-1);
      if (type === "Serial" && last?.type === "Serial") found[found.length - 1] = { extent: last.extent * size, type };
      else found.push({ extent: size, type });
    }
    if (product !== constantValue(axis.extent)) return null;
  }
  return found;
}

/** The operand's parts on axes of the given extents, which may cut parts of no type in two. Null if they do not fit. */
export function partsOnAxes(operand: Tensor, extents: readonly Scalar[]): readonly (readonly Part[])[] | null {
  const left = [...(partsOf(operand) ?? [])];
  const axes: Part[][] = [];
  for (const extent of extents) {
    let missing = constantValue(extent);
    const own: Part[] = [];
    while (missing !== null && missing > 1) {
      const next = left.shift();
      if (next === undefined) return null;
      const taken = next.type === "Serial" ? greatestCommonDivisor(next.extent, missing) : next.extent;
      if (missing % taken !== 0 || taken === 1) return null;
      if (taken < next.extent) left.unshift({ extent: next.extent / taken, type: next.type });
      own.push({ extent: taken, type: next.type });
      missing /= taken;
    }
    if (missing === null) return null;
    axes.push(own);
  }
  return left.length === 0 ? axes : null;
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
