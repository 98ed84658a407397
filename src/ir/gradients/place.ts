/**
 * Places a cotangent like its primal: on the same devices, with the same parts of each axis. Stream is left out,
 * because the backward pass chooses its own chunks.
 */
import { at } from "../../support/invariant.ts";
import { type IterDomainId, type Tensor, withoutReductions } from "../domain.ts";
import { layoutOf } from "../layout.ts";
import type { Call } from "../ops/call.ts";
import { type CutAxis, splitsOf, type SplitTree } from "../parts.ts";
import { parallelizeAxis, setMesh, splitAxis } from "../transforms.ts";

/**
 * Text of where a tensor's elements are, equal for tensors of one shape that need no communication between them. Null
 * if the tensor has no mesh yet, or merged axes.
 */
export function placementOf(tensor: Tensor): string | null {
  const place = layoutOf(tensor);
  const isMerged = tensor.domain.transforms.some(({ kind }) => kind === "merge");
  return place === null || isMerged ? null : `${place.mesh.toString()} ${JSON.stringify(place.axes)}`;
}

/** The first number of `count` new axes. */
type NewIds = (count: number) => number;

/**
 * The tensor, which has no placement yet, placed like `primal`, which has the same shape. `newIds` numbers the axes of a
 * split; axis i of `primal` is axis i + `added` of the tensor. The same object if `primal` has no placement.
 */
export function placedLike(tensor: Tensor, primal: Tensor, newIds: NewIds, place: Call, added = 0): Tensor {
  const primalPlace = placementOf(primal) === null ? null : layoutOf(primal);
  if (primalPlace === null) return tensor;
  const split = withoutReductions(tensor.domain.logical)
    .slice(added)
    .reduce((result, { id }, i) => withParts(result, id, at(primalPlace.axes, i), newIds, place), tensor);
  return setMesh(split, primalPlace.mesh, place);
}

function withParts(tensor: Tensor, axis: IterDomainId, cut: CutAxis, newIds: NewIds, place: Call): Tensor {
  const tree = splitsOf(cut);
  return tree === null ? tensor : withSplits(tensor, axis, tree, newIds, place);
}

function withSplits(tensor: Tensor, axis: IterDomainId, tree: SplitTree, newIds: NewIds, place: Call): Tensor {
  if (tree.kind === "axis") return parallelizeAxis(tensor, axis, tree.type, place);
  const position = tensor.domain.loop.findIndex(({ id }) => id === axis);
  const split = splitAxis(tensor, position, tree.factor, tree.innerSplit, newIds(2), place);
  const [outer, inner] = [at(split.domain.loop, position).id, at(split.domain.loop, position + 1).id];
  return withSplits(withSplits(split, outer, tree.outer, newIds, place), inner, tree.inner, newIds, place);
}
