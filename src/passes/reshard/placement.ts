/**
 * A placement describes how a tensor is distributed: its mesh, and how each DID type cuts an axis. Axes are numbered,
 * so that placements of an op's operand and output compare, and so that a placement can exist before the tensor does.
 */
import { splitOf } from "../../ir/axis-levels.ts";
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
import { type AxisPair, axisMap } from "../../ir/ops/axis-map.ts";
import type { Op } from "../../ir/ops/op.ts";
import { foldProduct, sameScalar } from "../../ir/scalar/fold.ts";
import { constant } from "../../ir/scalar/scalar.ts";
import { at } from "../../support/invariant.ts";
import { memoryOrder, movedOrder } from "../edit/tensor-edit.ts";
import { chunkFit, type StreamPart } from "../stream-loops/stream-part.ts";
import { addTensor, copyAxes, modelOf, splitLike, type SplitModel, type TensorEdit } from "../edit/tensor-edit.ts";

/** How a DID type cuts an axis among `devices` devices. */
export interface Cut extends Pick<AxisShard, "outer" | "inner" | "isWhole"> {
  /** The number of the axis. */
  readonly axis: number;
  readonly devices: number;
  /** The origin of the cut. A tensor that gets this cut splits its axis in the same way. */
  readonly source: { readonly domain: TensorDomain; readonly axis: IterDomain; readonly part: number };
}

export interface Placement {
  readonly mesh: DeviceMesh;
  readonly cuts: ReadonlyMap<DIDType, Cut>;
}

/** For each axis of an operand, the output axis that it maps to, or null. */
export function imagesOf(axes: readonly IterDomain[], pairs: readonly AxisPair[]): readonly (IterDomain | null)[] {
  return axes.map(({ id }) => pairs.find((pair) => pair.producer.id === id)?.consumer ?? null);
}

/** The placement of a tensor whose axis number i is `axes[i]`, or missing. Null for a tensor without a mesh. */
export function placementOf(tensor: Tensor, axes: readonly (IterDomain | null)[]): Placement | null {
  return tensor.mesh === null ? null : { mesh: tensor.mesh, cuts: cutsAmong(tensor, axisShards(tensor), axes) };
}

/** How DID types cut the axes that the tensor's op has reduced. */
export function reducedCuts(tensor: Tensor, axes: readonly (IterDomain | null)[]): ReadonlyMap<DIDType, Cut> {
  return cutsAmong(tensor, reducedShards(tensor), axes);
}

function cutsAmong(
  { mesh, domain }: Tensor,
  shards: readonly AxisShard[],
  axes: readonly (IterDomain | null)[],
): ReadonlyMap<DIDType, Cut> {
  const cuts = shards.flatMap(({ type, axis, part, outer, inner, isWhole }): readonly [DIDType, Cut][] => {
    const number = axes.findIndex((candidate) => candidate?.id === axis.id);
    if (number < 0 || mesh === null) return [];
    const position = axisParts(domain, axis).findIndex(({ id }) => id === part);
    const source = { domain, axis, part: position };
    return [[type, { axis: number, outer, inner, isWhole, devices: mesh.size(type), source }]];
  });
  return new Map(cuts);
}

/** The placements of an op's operand and output, by the operand's axis numbers. */
export interface OpPlacements {
  readonly from: Placement;
  readonly to: Placement;
  /** The number of the axis that the op reduces or squeezes; null for a Set. */
  readonly reduced: number | null;
}

/** The placements of a Set, or of a reduction or squeeze of one axis. Null for other ops, and without meshes. */
export function placementsOf(op: Op, tensors: readonly Tensor[]): OpPlacements | null {
  const reduced = op.kind === "Reduction" || op.kind === "Squeeze" ? op.axes : op.kind === "Set" ? [] : null;
  if (reduced === null || reduced.length > 1) return null;
  const producer = at(tensors, at(op.inputs, 0));
  const axes = withoutReductions(producer.domain.logical);
  const from = placementOf(producer, axes);
  const to = placementOf(at(tensors, op.output), imagesOf(axes, axisMap(op, tensors)));
  return from === null || to === null ? null : { from, to, reduced: reduced[0] ?? null };
}

/** The cut that gives every device one index of `axis`, which has number `number`. */
export function wholeCut(axis: IterDomain, number: number, devices: number): Cut {
  const source = { domain: plainDomain([axis]), axis, part: 0 };
  return { axis: number, outer: constant(1), inner: constant(1), isWhole: true, devices, source };
}

/** Whether both cuts give each device the same indices, or both are missing. */
export function sameShares(a: Cut | undefined, b: Cut | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.axis === b.axis && a.devices === b.devices && sameCut(a, b);
}

/** Whether one tensor can have both cuts: on different axes, or on different parts of an axis that both split alike. */
export function areCompatible(a: Cut, b: Cut): boolean {
  if (a.axis !== b.axis) return true;
  const [x, y] = [a, b].map(({ source }) => axisParts(source.domain, source.axis));
  return (
    a.source.part !== b.source.part &&
    x?.length === y?.length &&
    x?.every(({ extent }, i) => sameScalar(extent, y?.[i]?.extent ?? extent)) === true
  );
}

/** Where a tensor of the edit gets Stream, and how another tensor's axis has it. */
export interface StreamCut {
  /** A logical axis of the tensor that gets it. */
  readonly axis: IterDomainId;
  /** The logical axis that the Stream axis of `domain` is, or is a part of. */
  readonly source: { readonly domain: TensorDomain; readonly part: StreamPart };
}

/** Stream on the axis with number `number` of `axes`, as `tensor` has it; null if it has none that a loop can count. */
export function streamLike(
  { domain }: Pick<Tensor, "domain">,
  part: StreamPart | null,
  axis: IterDomain | null | undefined,
): StreamCut | null {
  return part === null || axis === null || axis === undefined ? null : { axis: axis.id, source: { domain, part } };
}

/**
 * Moves a tensor of the edit to another placement. It keeps its logical axes; `axes[i]` is axis number i of the
 * placement. The tensor gets Stream only where the placement leaves the axis whole, or cuts it as the source of Stream
 * does.
 */
export function moveTo(
  edit: TensorEdit,
  tensor: Tensor,
  axes: readonly (IterDomain | null)[],
  placement: Placement,
  stream: StreamCut | null,
): void {
  const modelled = tensor.domain.logical.map((axis) => {
    const number = axes.findIndex((candidate) => candidate?.id === axis.id);
    const own = stream !== null && stream.axis === axis.id && allowsStream(placement, number, stream) ? stream : null;
    const parallelType: ParallelType = own !== null && own.source.part.chunks === null ? "Stream" : "Serial";
    return {
      axis: axis.parallelType === parallelType ? axis : { ...axis, parallelType },
      model: cutModel(placement, number, own),
    };
  });
  const domain = splitLike(edit, modelled);
  const allocation = movedOrder(tensor.domain, domain.logical);
  edit.tensors[tensor.id] = { ...tensor, mesh: placement.mesh, domain: { ...domain, allocation } };
}

/** Whether a loop over Stream like `stream` takes a run of what each device has of an axis of the placement. */
export function allowsStream({ cuts }: Placement, axis: number, { source }: StreamCut): boolean {
  const own = [...cuts].filter(([, cut]) => cut.axis === axis);
  const { chunks } = source.part;
  if (chunks === null) return own.length === 0;
  if (!chunks.within.every((type) => own.some(([other]) => other === type))) return false;
  return own.every(([, cut]) => chunkFit(cut.source, cut.source.axis, chunks).kind === "fits");
}

/** The splits and types of an axis by the placement's cuts and by Stream; null for an axis without them. */
function cutModel({ cuts }: Placement, axis: number, stream: StreamCut | null): SplitModel | null {
  const own = didTypes.flatMap((type) => {
    const cut = cuts.get(type);
    return cut?.axis === axis ? [{ type, cut }] : [];
  });
  const streamed = stream === null ? null : streamModel(own, stream);
  if (streamed !== null) return streamed;
  const [first] = own;
  if (first === undefined) return null;
  const { source } = first.cut;
  const types = axisParts(source.domain, source.axis).map(
    (_, part): ParallelType => own.find(({ cut }) => cut.source.part === part)?.type ?? "Serial",
  );
  return { domain: source.domain, axis: source.axis, types };
}

/** The splits of an axis with the given cuts and with Stream on chunks, as one of their sources splits it. */
function streamModel(
  own: readonly { readonly type: DIDType; readonly cut: Cut }[],
  { source: { domain, part } }: StreamCut,
): SplitModel | null {
  const { chunks } = part;
  if (chunks === null) return null;
  for (const source of [{ domain, axis: part.axis }, ...own.map(({ cut }) => cut.source)]) {
    const fit = chunkFit(source, source.axis, chunks);
    if (fit.kind !== "fits" || fit.part === null) continue;
    const parts = axisParts(source.domain, source.axis);
    const extents = parts.map(({ extent }) => extent);
    const types = parts.map(({ id, parallelType }, position): ParallelType => {
      if (id === fit.part) return "Stream";
      const cut = { outer: foldProduct(extents.slice(0, position)), inner: foldProduct(extents.slice(position + 1)) };
      return own.find((each) => each.type === parallelType && sameCut(each.cut, cut))?.type ?? "Serial";
    });
    if (own.some(({ type }) => !types.includes(type))) continue;
    return trimmed(
      { ...source, types },
      types.findLastIndex((type) => type !== "Serial"),
    );
  }
  return null;
}

/** The model without the splits inside of part `last`, unless an outer part is split again. */
function trimmed({ domain, axis, types }: SplitModel, last: number): SplitModel {
  const transforms: TensorDomain["transforms"][number][] = [];
  let { id } = axis;
  for (let count = 0; count <= last; count++) {
    const split = splitOf(domain, id);
    if (split === null || splitOf(domain, split.outer) !== null) return { domain, axis, types };
    transforms.push(split);
    id = split.inner;
  }
  return { domain: { ...domain, transforms }, axis, types: types.slice(0, last + 1) };
}

/** Appends a tensor like `tensor`, without its reduced axes: same mesh, parallel types, memory and order in memory. */
export function addCopy(edit: TensorEdit, tensor: Tensor): Tensor {
  const axes = withoutReductions(tensor.domain.logical);
  const copies = copyAxes(edit, axes, ({ parallelType }) => parallelType);
  const domain = splitLike(
    edit,
    copies.map((axis, i) => ({ axis, model: modelOf(tensor, at(axes, i)) })),
  );
  const order = memoryOrder(tensor.domain)?.flatMap((axis) => {
    const kept = axes.indexOf(axis);
    return kept < 0 ? [] : [at(domain.logical, kept)];
  });
  return addTensor(edit, tensor, { ...domain, allocation: order ?? null }, tensor.mesh, tensor.memory);
}
