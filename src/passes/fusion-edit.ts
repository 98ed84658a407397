/**
 * Edits of a Fusion as data, for passes: a new tensor with the axes of another under fresh ids, and a tensor
 * whose axes' parallel types change. All functions are pure.
 */
import type { DeviceMesh } from "../ir/device-mesh.ts";
import {
  type IterDomain,
  type IterDomainId,
  type ParallelType,
  plainDomain,
  type Tensor,
  type TensorId,
} from "../ir/domain.ts";
import { makeId } from "../support/ids.ts";

/** Copies of `axes` with the ids `firstId`, `firstId + 1`, .... */
export function cloneAxes(
  axes: readonly IterDomain[],
  firstId: number,
  parallel: (axis: IterDomain) => ParallelType,
): IterDomain[] {
  return axes.map((axis, i) => ({ ...axis, id: makeId<IterDomainId>(firstId + i), parallelType: parallel(axis) }));
}

/** The tensor with other parallel types; the same object when none changes. */
export function reparallelize(
  tensor: Tensor,
  parallel: (axis: IterDomain) => ParallelType,
  mesh: DeviceMesh | null,
): Tensor {
  const change = (axis: IterDomain): IterDomain => {
    const parallelType = parallel(axis);
    return parallelType === axis.parallelType ? axis : { ...axis, parallelType };
  };
  const { logical, loop, allocation, transforms } = tensor.domain;
  const changed = tensor.mesh !== mesh || [...logical, ...loop].some((axis) => parallel(axis) !== axis.parallelType);
  if (!changed) return tensor;
  const domain = {
    logical: logical.map(change),
    transforms,
    loop: loop.map(change),
    allocation: allocation?.map(change) ?? null,
  };
  return { ...tensor, mesh, domain };
}

export function newTensor(id: number, like: Tensor, logical: readonly IterDomain[], mesh: DeviceMesh | null): Tensor {
  return { id: makeId<TensorId>(id), dtype: like.dtype, memory: "global", domain: plainDomain(logical), mesh };
}
