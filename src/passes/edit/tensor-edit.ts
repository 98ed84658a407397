/**
 * Helpers with which passes make tensors: copies of axes under new ids, domains split like other domains, and tensors
 * appended to a table under construction.
 */
import type { DeviceMesh } from "../../ir/device-mesh.ts";
import {
  type AxisShape,
  isDID,
  type IterDomain,
  type IterDomainId,
  type MemoryType,
  type ParallelType,
  plainDomain,
  type Relation,
  type Tensor,
  type TensorDomain,
  type TensorId,
} from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import type { Op } from "../../ir/ops/op.ts";
import { derivedOrigin } from "../../ir/origin.ts";
import { loopAxesOf } from "../../ir/parts.ts";
import type { Scalar } from "../../ir/scalar/scalar.ts";
import { makeId } from "../../support/ids.ts";
import { at } from "../../support/invariant.ts";
import { getOrMake } from "../../support/lists.ts";

/** The tensor table of a program under construction, and the id of its next axis. */
export interface TensorEdit {
  readonly tensors: Tensor[];
  iterDomainCount: number;
}

/** A Fusion under construction. */
export interface FusionEdit extends TensorEdit {
  readonly ops: Op[];
}

/** An edit with the Fusion's tensors and no ops. */
export function editFusion({ tensors, iterDomainCount }: FusionData): FusionEdit {
  return { tensors: [...tensors], ops: [], iterDomainCount };
}

/** Copies of `axes` under new ids. */
export function copyAxes(
  edit: TensorEdit,
  axes: readonly IterDomain[],
  parallel: (axis: IterDomain) => ParallelType,
): IterDomain[] {
  return axes.map((axis) => ({ ...axis, id: nextAxisId(edit), parallelType: parallel(axis) }));
}

/** A new Serial axis. */
export function addAxis(edit: TensorEdit, { extent, iterType }: AxisShape): IterDomain {
  return { id: nextAxisId(edit), extent, iterType, parallelType: "Serial" };
}

export function nextAxisId(edit: TensorEdit): IterDomainId {
  return makeId<IterDomainId>(edit.iterDomainCount++);
}

/** Appends a tensor with the dtype of `like`. */
export function addTensor(
  edit: TensorEdit,
  like: Tensor,
  domain: TensorDomain,
  mesh: DeviceMesh | null,
  memory: MemoryType = "global",
  relation: Relation = "copy",
): Tensor {
  const id = makeId<TensorId>(edit.tensors.length);
  const tensor: Tensor = { id, dtype: like.dtype, memory, domain, mesh, ...derivedOrigin(like, relation) };
  edit.tensors.push(tensor);
  return tensor;
}

/** `addTensor` with one Serial axis per shape. */
export function addSerialTensor(
  edit: TensorEdit,
  like: Tensor,
  shapes: readonly AxisShape[],
  mesh: DeviceMesh | null,
  relation: Relation = "copy",
): Tensor {
  const axes = shapes.map((shape) => addAxis(edit, shape));
  return addTensor(edit, like, plainDomain(axes), mesh, "global", relation);
}

/** The tensor with other parallel types and another mesh; the same object when nothing changes. */
export function reparallelize(
  tensor: Tensor,
  parallel: (axis: IterDomain) => ParallelType,
  mesh = tensor.mesh,
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

/**
 * The logical axes, outermost in memory first. Null if the user set no order, or an order in which parts of one axis
 * are not adjacent. Parts with a DID type have no extent in a device's memory and do not count.
 */
export function memoryOrder(domain: TensorDomain): readonly IterDomain[] | null {
  const { allocation, logical } = domain;
  if (allocation === null) return null;
  const parts = logical.map((axis) => loopAxesOf(domain, axis));
  const order: number[] = [];
  for (const { id, parallelType } of allocation) {
    const whole = logical.findIndex((axis) => axis.id === id);
    const position = whole >= 0 ? whole : parts.findIndex((own) => own.some((part) => part.id === id));
    if (position < 0) return null;
    if (whole < 0 && isDID(parallelType)) continue;
    if (order.at(-1) === position) continue;
    if (order.includes(position)) return null;
    order.push(position);
  }
  const left = [...logical.keys()].filter((i) => at(logical, i).iterType !== "reduction" && !order.includes(i));
  return [...order, ...left].map((position) => at(logical, position));
}

/** The order of `domain` for a new list of logical axes. Axes that `domain` lacks become innermost. */
export function movedOrder(domain: TensorDomain, logical: readonly IterDomain[]): readonly IterDomain[] | null {
  const order = memoryOrder(domain);
  if (order === null) return null;
  const kept = order.flatMap(({ id }) => logical.filter((axis) => axis.id === id));
  return [...kept, ...logical.filter((axis) => !kept.includes(axis) && axis.iterType !== "reduction")];
}

/** Appends a copy of a tensor, perhaps of another program, with its reduced axes, transforms and order in memory. */
export function copyTensor(edit: TensorEdit, tensor: Tensor): Tensor {
  const ids = new Map<IterDomainId, IterDomainId>();
  const domain = withAxisIds(tensor.domain, (id) => getOrMake(ids, id, () => nextAxisId(edit)));
  const copy: Tensor = { ...tensor, id: makeId<TensorId>(edit.tensors.length), domain };
  edit.tensors.push(copy);
  return copy;
}

/** The domain with other numbers of axes, and other extents. */
export function withAxisIds(
  { logical, transforms, loop, allocation }: TensorDomain,
  idOf: (id: IterDomainId) => IterDomainId,
  extentOf: (extent: Scalar) => Scalar = (extent) => extent,
): TensorDomain {
  const axes = (own: readonly IterDomain[]): readonly IterDomain[] =>
    own.map((axis) => ({ ...axis, id: idOf(axis.id), extent: extentOf(axis.extent) }));
  return {
    logical: axes(logical),
    transforms: transforms.map((each) =>
      each.kind === "split"
        ? { ...each, input: idOf(each.input), outer: idOf(each.outer), inner: idOf(each.inner) }
        : { ...each, outer: idOf(each.outer), inner: idOf(each.inner), output: idOf(each.output) },
    ),
    loop: axes(loop),
    allocation: allocation === null ? null : axes(allocation),
  };
}
