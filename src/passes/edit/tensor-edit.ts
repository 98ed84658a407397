/**
 * Helpers with which passes make tensors: copies of axes under new ids, domains split like other domains, and tensors
 * appended to a table under construction.
 */
import type { DeviceMesh } from "../../ir/device-mesh.ts";
import {
  allocatedAxes,
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
  type Transform,
} from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import type { Op } from "../../ir/ops/op.ts";
import { derivedOrigin } from "../../ir/origin.ts";
import { loopAxesOf, type CutAxis, cutOf, isCut, rescaled, splitsOf, type SplitTree } from "../../ir/parts.ts";
import type { Scalar } from "../../ir/scalar/scalar.ts";
import { makeId, at, getOrMake, invariant } from "../../support/invariant.ts";
import { constantValue } from "../../ir/scalar/fold.ts";

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

function nextAxisId(edit: TensorEdit): IterDomainId {
  return makeId<IterDomainId>(edit.iterDomainCount++);
}

/** Appends a tensor with the dtype of `like`. */
export function addTensor(
  edit: TensorEdit,
  like: Pick<Tensor, "dtype" | "origin">,
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

/** The tensor with Serial in place of Stream. */
export function withSerialStream(tensor: Tensor): Tensor {
  return reparallelize(tensor, ({ parallelType }) => (parallelType === "Stream" ? "Serial" : parallelType));
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
  const { logical } = domain;
  const allocated = allocatedAxes(domain);
  if (allocated === null) return null;
  const parts = logical.map((axis) => loopAxesOf(domain, axis));
  const order: number[] = [];
  for (const { id, parallelType } of allocated) {
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

/* Domains whose axes are cut as given parts say: the splits that make the parts, with new axes. */

/** A logical axis and how it is to be cut; null for an axis that keeps its type and is not split. */
export interface ModelledAxis {
  readonly axis: IterDomain;
  readonly model: CutAxis | null;
}

/** A domain of the given logical axes, split as their models are. A model without a parallel type splits nothing. */
export function splitLike(edit: TensorEdit, axes: readonly ModelledAxis[]): TensorDomain {
  const splits: Splits = { known: [], transforms: [], loop: [] };
  const logical = axes.map(({ axis, model }) => {
    if (model === null || model.parts.length === 1 || !isCut(model)) {
      const parallelType = model?.parts[0]?.type ?? axis.parallelType;
      const whole = parallelType === axis.parallelType || parallelType === "Serial" ? axis : { ...axis, parallelType };
      splits.loop.push(whole);
      return whole;
    }
    // Of the copy's own extent: the outermost axes of a reshape differ in extent.
    split(edit, axis, treeOf(rescaled(model, axis.extent)), splits);
    return axis;
  });
  return { logical, transforms: splits.transforms, loop: splits.loop, allocation: null };
}

function treeOf(cut: CutAxis): SplitTree {
  const tree = splitsOf(cut);
  invariant(tree !== null, "splits make the parts of an axis", { cut });
  return tree;
}

/** A domain under construction. `known` splits that make the same parts are used again. */
interface Splits {
  readonly known: readonly Transform[];
  readonly transforms: Transform[];
  readonly loop: IterDomain[];
}

type Split = Extract<Transform, { readonly kind: "split" }>;

function split(
  edit: TensorEdit,
  { id, iterType }: Pick<IterDomain, "id" | "iterType">,
  tree: SplitTree,
  splits: Splits,
): void {
  if (tree.kind === "axis") {
    splits.loop.push({ id, extent: tree.extent, iterType, parallelType: tree.type });
    return;
  }
  const { factor, innerSplit, outer, inner } = tree;
  const known = splits.known.find((each): each is Split => each.kind === "split" && each.input === id);
  const isSame = known !== undefined && constantValue((known.innerSplit ? inner : outer).extent) === known.factor;
  const made: Split = isSame
    ? known
    : { kind: "split", input: id, outer: nextAxisId(edit), inner: nextAxisId(edit), factor, innerSplit };
  splits.transforms.push(made);
  split(edit, { id: made.outer, iterType }, outer, splits);
  split(edit, { id: made.inner, iterType }, inner, splits);
}

/**
 * The domain with one of its logical axes cut otherwise. Splits that make the same parts stay. Null if no splits make
 * the parts, or if the order of memory lists parts that are no more.
 */
export function recut(edit: TensorEdit, domain: TensorDomain, axis: IterDomain, cut: CutAxis): TensorDomain | null {
  const tree = splitsOf(cut);
  if (tree === null) return null;
  const before = new Set<IterDomainId>([axis.id]);
  for (const each of domain.transforms) {
    if (each.kind === "split" && before.has(each.input)) before.add(each.outer).add(each.inner);
  }
  const splits: Splits = { known: domain.transforms, transforms: [], loop: [] };
  split(edit, axis, tree, splits);
  const { transforms, loop } = splits;
  const others = domain.transforms.filter((each) => each.kind !== "split" || !before.has(each.input));
  const kept = domain.transforms.filter((each) => others.includes(each) || transforms.includes(each));
  // The parts that an axis of the old domain has become.
  const partsOf = (id: IterDomainId): readonly IterDomain[] => {
    const own = transforms.find((each): each is Split => each.kind === "split" && each.input === id);
    return own === undefined ? loop.filter((each) => each.id === id) : [own.outer, own.inner].flatMap(partsOf);
  };
  const typed = (own: IterDomain): IterDomain =>
    own.id === axis.id ? (loop.find(({ id }) => id === own.id) ?? own) : own;
  const allocation = domain.allocation?.map((own) =>
    own.id === axis.id || !before.has(own.id) ? [typed(own)] : partsOf(own.id),
  );
  if (allocation?.some((own) => own.length === 0) === true) return null;
  const first = domain.loop.findIndex(({ id }) => before.has(id));
  return {
    logical: domain.logical.map(typed),
    transforms: [...kept, ...transforms.filter((each) => !kept.includes(each))],
    loop: domain.loop.flatMap((own, i) => (i === first ? loop : before.has(own.id) ? [] : [own])),
    allocation: allocation?.flat() ?? null,
  };
}

/** Replaces the domain of a tensor of the edit (see `splitLike`). The order of its axes in memory stays. */
export function redomain(edit: TensorEdit, tensor: Tensor, axes: readonly ModelledAxis[]): void {
  const domain = splitLike(edit, axes);
  const allocation = movedOrder(tensor.domain, domain.logical);
  edit.tensors[tensor.id] = { ...tensor, domain: { ...domain, allocation } };
}

// The tensor of shares that devices exchange in place of a reduction over them.

/**
 * Appends a tensor like `sum` before the reduction of its axis `devices`, which gets `type`. Each device's share is in one
 * piece of memory, wherever that axis is.
 */
export function addShares(edit: TensorEdit, sum: Tensor, devices: IterDomain, type: ParallelType): Tensor {
  const { logical } = sum.domain;
  const axes = copyAxes(edit, logical, ({ parallelType }) => parallelType);
  const domain = splitLike(
    edit,
    axes.map((axis, i) => {
      const own = at(logical, i);
      return own.id === devices.id
        ? { axis: { ...axis, iterType: "iteration", parallelType: type }, model: null }
        : { axis, model: cutOf(sum.domain, own) };
    }),
  );
  const position = logical.findIndex(({ id }) => id === devices.id);
  const first = at(domain.logical, position);
  const allocation = position === 0 ? null : [first, ...domain.logical.filter((axis) => axis !== first)];
  return addTensor(edit, sum, { ...domain, allocation }, sum.mesh, "global", "parts");
}
