/**
 * Places a cotangent like its primal: on the same devices, with the same parts of each axis. Stream is left out,
 * because the backward pass chooses its own chunks.
 */
import { at } from "../../support/invariant.ts";
import { type AxisLevels, levelsOf } from "../axis-levels.ts";
import {
  isDID,
  type IterDomain,
  type IterDomainId,
  type ParallelType,
  type Tensor,
  type TensorDomain,
  withoutReductions,
} from "../domain.ts";
import type { Call } from "../ops/call.ts";
import { parallelizeAxis, setMesh, splitAxis } from "../transforms.ts";

/**
 * Text of where a tensor's elements are, equal for tensors of one shape that need no communication between them. Null
 * if the tensor has no mesh yet, or merged axes.
 */
export function placementOf({ domain, mesh }: Tensor): string | null {
  const levels = withoutReductions(domain.logical).map((axis) => deviceLevels(domain, axis));
  return mesh === null || levels.includes(null) ? null : `${mesh.toString()} ${JSON.stringify(levels)}`;
}

/** The levels of an axis down to the innermost DID type, without Stream. Null for an axis without levels. */
function deviceLevels(domain: TensorDomain, axis: IterDomain): AxisLevels | null {
  const all = levelsOf(domain, axis);
  if (all === null) return null;
  const kept = (type: ParallelType): ParallelType => (isDID(type) ? type : "Serial");
  const levels = all.levels.map((level) => ({ ...level, type: kept(level.type) }));
  const rest = kept(all.rest);
  const last = levels.findLastIndex(({ type }) => type !== "Serial");
  return { levels: rest === "Serial" ? levels.slice(0, last + 1) : levels, rest };
}

/**
 * The tensor, which has no placement yet, placed like `primal`, which has the same shape. `newIds` numbers the axes of a
 * split; axis i of `primal` is axis i + `added` of the tensor. The same object if `primal` has no placement.
 */
export function placedLike(
  tensor: Tensor,
  primal: Tensor,
  newIds: (count: number) => number,
  place: Call,
  added = 0,
): Tensor {
  if (placementOf(primal) === null || primal.mesh === null) return tensor;
  const axes = withoutReductions(primal.domain.logical);
  const split = withoutReductions(tensor.domain.logical)
    .slice(added)
    .reduce((result, { id }, i) => {
      const levels = deviceLevels(primal.domain, at(axes, i));
      return levels === null ? result : withLevels(result, id, levels, newIds, place);
    }, tensor);
  return setMesh(split, primal.mesh, place);
}

function withLevels(
  tensor: Tensor,
  axis: IterDomainId,
  { levels, rest }: AxisLevels,
  newIds: (count: number) => number,
  place: Call,
): Tensor {
  let [result, id] = [tensor, axis];
  for (const { factor, innerSplit, type } of levels) {
    const position = result.domain.loop.findIndex((each) => each.id === id);
    result = splitAxis(result, position, factor, innerSplit, newIds(2), place);
    result = parallelizeAxis(result, at(result.domain.loop, position).id, type, place);
    ({ id } = at(result.domain.loop, position + 1));
  }
  return parallelizeAxis(result, id, rest, place);
}
