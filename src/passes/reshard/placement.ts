/**
 * Where a tensor lies: its mesh, and for every DID type how that cuts an axis. Axes are numbered, so that placements of an op's
 * operand and of its output can be compared, and those in between thought of before there is a tensor.
 */
import { axisParts, axisShards, type AxisShard, reducedShards, sameCut } from "../../ir/axis-shards.ts";
import type { DeviceMesh } from "../../ir/device-mesh.ts";
import {
  type DIDType,
  didTypes,
  type IterDomain,
  type IterDomainId,
  type ParallelType,
  plainDomain,
  type Tensor,
  type TensorDomain,
  withoutReductions,
} from "../../ir/domain.ts";
import { constant } from "../../ir/scalar/scalar.ts";
import { sameScalar } from "../../ir/scalar/fold.ts";
import { at } from "../../support/invariant.ts";
import { cloneAxes, domainLike, type FusionEdit, newTensor, partsOf, type PartsModel } from "../edit/fusion-edit.ts";
import { memoryOrder, movedOrder } from "../edit/memory-order.ts";

/** How a DID type cuts an axis among `devices` devices. */
export interface Cut extends Pick<AxisShard, "outer" | "inner"> {
  readonly axis: number;
  readonly devices: number;
  /** Where the cut was first seen: a placement that takes it over splits its axis in the same way. */
  readonly source: { readonly domain: TensorDomain; readonly axis: IterDomain; readonly part: number };
}

export interface Placement {
  readonly mesh: DeviceMesh;
  readonly cuts: ReadonlyMap<DIDType, Cut>;
}

/** `axes[i]` is the tensor's axis with number i; null where it has none. A tensor without a mesh has no placement. */
export function placementOf(tensor: Tensor, axes: readonly (IterDomain | null)[]): Placement | null {
  return tensor.mesh === null ? null : { mesh: tensor.mesh, cuts: cutsAmong(tensor, axisShards(tensor), axes) };
}

/** How DID types cut the axes that a tensor's op has reduced. */
export function reducedCuts(tensor: Tensor, axes: readonly (IterDomain | null)[]): ReadonlyMap<DIDType, Cut> {
  return cutsAmong(tensor, reducedShards(tensor), axes);
}

function cutsAmong(
  { mesh, domain }: Tensor,
  shards: readonly AxisShard[],
  axes: readonly (IterDomain | null)[],
): ReadonlyMap<DIDType, Cut> {
  const cuts = shards.flatMap(({ type, axis, part, outer, inner }): readonly [DIDType, Cut][] => {
    const number = axes.findIndex((candidate) => candidate?.id === axis.id);
    if (number < 0 || mesh === null) return [];
    const position = axisParts(domain, axis).findIndex(({ id }) => id === part);
    return [[type, { axis: number, outer, inner, devices: mesh.size(type), source: { domain, axis, part: position } }]];
  });
  return new Map(cuts);
}

/** The cut that gives every device one index of `axis`, which has number `number`. */
export function wholeCut(axis: IterDomain, number: number, devices: number): Cut {
  const source = { domain: plainDomain([axis]), axis, part: 0 };
  return { axis: number, outer: constant(1), inner: constant(1), devices, source };
}

export function sameShares(a: Cut | undefined, b: Cut | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.axis === b.axis && a.devices === b.devices && sameCut(a, b);
}

/** Whether two cuts can stand on one tensor: on different axes, or as different parts of axes that are split alike. */
export function areCompatible(a: Cut, b: Cut): boolean {
  if (a.axis !== b.axis) return true;
  const [x, y] = [a, b].map(({ source }) => axisParts(source.domain, source.axis));
  return (
    a.source.part !== b.source.part &&
    x?.length === y?.length &&
    x?.every(({ extent }, i) => sameScalar(extent, y?.[i]?.extent ?? extent)) === true
  );
}

/**
 * `tensor` at another place. It keeps its logical axes, `axes[i]` of which is number i in `placement`; parts of split axes get ids from
 * `firstId`. `stream` names the axis with Stream; an axis that the placement cuts cannot have it.
 */
export function placed(
  tensor: Tensor,
  axes: readonly (IterDomain | null)[],
  placement: Placement,
  stream: IterDomainId | null,
  firstId: number,
): { readonly tensor: Tensor; readonly count: number } {
  const parts = tensor.domain.logical.map((axis) => {
    const parallelType: ParallelType = axis.id === stream ? "Stream" : "Serial";
    const model = modelOf(
      placement,
      axes.findIndex((candidate) => candidate?.id === axis.id),
    );
    return { axis: axis.parallelType === parallelType ? axis : { ...axis, parallelType }, model };
  });
  const { domain, count } = domainLike(parts, firstId);
  return {
    tensor: {
      ...tensor,
      mesh: placement.mesh,
      domain: { ...domain, allocation: movedOrder(tensor.domain, domain.logical) },
    },
    count,
  };
}

function modelOf({ cuts }: Placement, axis: number): PartsModel | null {
  const own = didTypes.flatMap((type) => {
    const cut = cuts.get(type);
    return cut?.axis === axis ? [{ type, ...cut.source }] : [];
  });
  const [first] = own;
  if (first === undefined) return null;
  const types = axisParts(first.domain, first.axis).map(
    (_, part): ParallelType => own.find((cut) => cut.part === part)?.type ?? "Serial",
  );
  return { domain: first.domain, axis: first.axis, types };
}

/** Puts a tensor of an edit at another place (see `placed`). */
export function moveTo(
  edit: FusionEdit,
  tensor: Tensor,
  axes: readonly (IterDomain | null)[],
  placement: Placement,
  stream: IterDomainId | null,
): void {
  const moved = placed(tensor, axes, placement, stream, edit.iterDomainCount);
  edit.iterDomainCount += moved.count;
  edit.tensors[tensor.id] = moved.tensor;
}

/** A tensor with the axes that `tensor` has at run time, under fresh ids: of the same mesh, parallel types and order in memory. */
export function copyOf(
  tensor: Tensor,
  id: number,
  firstId: number,
): { readonly tensor: Tensor; readonly count: number } {
  const axes = withoutReductions(tensor.domain.logical);
  const copies = cloneAxes(axes, firstId, ({ parallelType }) => parallelType);
  const { domain, count } = domainLike(
    copies.map((axis, i) => ({ axis, model: partsOf(tensor, at(axes, i)) })),
    firstId + copies.length,
  );
  const order = memoryOrder(tensor.domain)?.flatMap((axis) => {
    const kept = axes.indexOf(axis);
    return kept < 0 ? [] : [at(domain.logical, kept)];
  });
  const copy = newTensor(id, tensor, domain.logical, tensor.mesh);
  return {
    tensor: { ...copy, memory: tensor.memory, domain: { ...domain, allocation: order ?? null } },
    count: copies.length + count,
  };
}
