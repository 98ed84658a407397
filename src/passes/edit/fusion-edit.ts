/**
 * Edits of a Fusion as data, for passes: a new tensor with the axes of another under fresh ids, a domain cut like others, and a
 * tensor whose axes' parallel types change. All functions but those on a
 * FusionEdit are pure.
 */
import type { DeviceMesh } from "../../ir/device-mesh.ts";
import { axisParts } from "../../ir/axis-shards.ts";
import {
  type AxisShape,
  type IterDomain,
  type IterDomainId,
  type ParallelType,
  plainDomain,
  type Tensor,
  type TensorDomain,
  type TensorId,
  type Transform,
} from "../../ir/domain.ts";
import type { Op } from "../../ir/ops/op.ts";
import { makeId } from "../../support/ids.ts";
import { invariant } from "../../support/invariant.ts";
import { movedOrder } from "./memory-order.ts";

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

/** What the parts of an axis are copied from: the splits of an axis of a domain, and the parallel type of every part, outermost first. */
export interface PartsModel {
  readonly domain: TensorDomain;
  readonly axis: IterDomain;
  readonly types: readonly ParallelType[];
}

/** A logical axis, and what its parts are copied from; null for an axis without a DID type. */
export interface ModelledAxis {
  readonly axis: IterDomain;
  readonly model: PartsModel | null;
}

/**
 * A domain of the logical axes `axes`, cut as their models are; an axis without a model, or without a parallel type in it, is not
 * split. Parts get the ids `firstId`, `firstId + 1`, ....
 */
export function domainLike(
  axes: readonly ModelledAxis[],
  firstId: number,
): { readonly domain: TensorDomain; readonly count: number } {
  let count = 0;
  const transforms: Transform[] = [];
  const logical: IterDomain[] = [];
  const loop: IterDomain[] = [];
  for (const { axis, model } of axes) {
    const parts = model === null ? [] : axisParts(model.domain, model.axis);
    if (model === null || parts.length === 1 || model.types.every((type) => type === "Serial")) {
      const parallelType = model?.types[0] ?? axis.parallelType;
      const whole = parallelType === axis.parallelType || parallelType === "Serial" ? axis : { ...axis, parallelType };
      logical.push(whole);
      loop.push(whole);
      continue;
    }
    const ids = new Map<IterDomainId, IterDomainId>([[model.axis.id, axis.id]]);
    for (const transform of model.domain.transforms) {
      if (transform.kind !== "split") continue;
      const input = ids.get(transform.input);
      if (input === undefined) continue;
      const [outer, inner] = [makeId<IterDomainId>(firstId + count), makeId<IterDomainId>(firstId + count + 1)];
      count += 2;
      ids.set(transform.outer, outer).set(transform.inner, inner);
      transforms.push({ ...transform, input, outer, inner });
    }
    logical.push(axis);
    parts.forEach(({ id, extent }, i) => {
      const own = ids.get(id);
      invariant(own !== undefined, "every part of an axis comes from a split of it", model.domain);
      loop.push({ id: own, extent, iterType: axis.iterType, parallelType: model.types[i] ?? "Serial" });
    });
  }
  return { domain: { logical, transforms, loop, allocation: null }, count };
}

/** The parts of an axis as they are, for a copy of it. */
export function partsOf({ domain }: Tensor, axis: IterDomain, type = (own: ParallelType) => own): PartsModel {
  return { domain, axis, types: axisParts(domain, axis).map(({ parallelType }) => type(parallelType)) };
}

export function newTensor(id: number, like: Tensor, logical: readonly IterDomain[], mesh: DeviceMesh | null): Tensor {
  return { id: makeId<TensorId>(id), dtype: like.dtype, memory: "global", domain: plainDomain(logical), mesh };
}

/** A Fusion under way: tables that grow, and ops in their order. */
export interface FusionEdit {
  readonly tensors: Tensor[];
  readonly ops: Op[];
  iterDomainCount: number;
}

/** A new tensor with Serial axes of these shapes, of the dtype of `like`. */
export function addTensor(
  edit: FusionEdit,
  like: Tensor,
  shapes: readonly AxisShape[],
  mesh: DeviceMesh | null,
): Tensor {
  const logical = shapes.map(({ extent, iterType }, i): IterDomain => ({
    id: makeId<IterDomainId>(edit.iterDomainCount + i),
    extent,
    iterType,
    parallelType: "Serial",
  }));
  edit.iterDomainCount += logical.length;
  const tensor = newTensor(edit.tensors.length, like, logical, mesh);
  edit.tensors.push(tensor);
  return tensor;
}

/** Gives a tensor of the edit a domain like others' (see `domainLike`); it keeps its order in memory. */
export function redomain(edit: FusionEdit, tensor: Tensor, axes: readonly ModelledAxis[]): void {
  const { domain, count } = domainLike(axes, edit.iterDomainCount);
  edit.iterDomainCount += count;
  const allocation = movedOrder(tensor.domain, domain.logical);
  edit.tensors[tensor.id] = { ...tensor, domain: { ...domain, allocation } };
}
