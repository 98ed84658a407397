/** Gives one tensor the mesh and the parallel types of another one, by the axes that an op maps to one another. */
import {
  isDID,
  type IterDomain,
  type ParallelType,
  type Tensor,
  type TensorDomain,
  type TensorId,
} from "../../ir/domain.ts";
import type { DeviceMesh } from "../../ir/device-mesh.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import type { AxisPair } from "../../ir/ops/axis-map.ts";
import type { Op } from "../../ir/ops/op.ts";
import { streamCallOf } from "../../ir/origin.ts";
import { type CutAxis, cutOf, dividesEvenly, inParts, isCut, rescaled, withTypes } from "../../ir/parts.ts";
import { shardsOf } from "../../ir/shards.ts";
import { streamAxis } from "../../ir/stream.ts";
import { at } from "../../support/invariant.ts";
import type { TensorEdit } from "../edit/tensor-edit.ts";
import { reshapedAxes } from "../routes/local-reshape.ts";
import { addParts } from "./place-cotangents.ts";

export function followOperands(
  edit: TensorEdit,
  op: Op,
  pairsOf: () => readonly AxisPair[],
  order: readonly number[],
): void {
  for (const operand of order) {
    follow(edit, at(op.inputs, operand), op.output, () => forward(pairsOf(), operand), allTypes);
  }
}

/** Whether readers of a tensor contract an axis with one that is cut alike. */
export type ContractedAlike = (axis: IterDomain, tensor: TensorId, cut: CutAxis) => boolean;

/** Gives the result `made` of a reshape all parts of the operand, in order, if its pairs of axes gave it fewer. */
export function followReshape(edit: TensorEdit, operand: TensorId, made: Tensor, isContracted: ContractedAlike): void {
  const source = at(edit.tensors, operand);
  const wanted = shardsOf(source).length;
  if (wanted === 0 || made.domain.transforms.length > 0 || shardsOf(at(edit.tensors, made.id)).length === wanted)
    return;
  const axes = made.domain.logical;
  const cuts = reshapedAxes(
    source,
    axes.map(({ extent }) => extent),
  );
  // Runs of a cut axis that lie apart after the reshape suit few readers, but a sum over them does not mind.
  const isApart = (cut: CutAxis, i: number): boolean =>
    cut.parts.slice(0, -1).some(({ type }) => type === "Serial") && !isContracted(at(axes, i), made.id, cut);
  if (cuts === null || cuts.some(isApart)) return;
  const domain = axes.reduce((cut, axis, i) => addParts(edit, cut, axis, at(cuts, i)).domain, made.domain);
  edit.tensors[made.id] = placedAs(source, made, domain, source.mesh);
}

/** Cuts what ops make of tensors that have been cut since they were as in `before`, where nothing cuts it yet. */
export function followLate(
  edit: TensorEdit,
  fusion: FusionData,
  before: readonly Tensor[],
  pairsOf: (i: number) => readonly AxisPair[],
): void {
  const cutLate = new Set<TensorId>();
  const cutsOf = (tensor: Tensor): number => shardsOf(tensor).length;
  for (const [i, op] of fusion.ops.entries()) {
    const isUsers = at(fusion.tensors, op.output).mesh !== null;
    for (const [operand, id] of op.inputs.entries()) {
      if (cutLate.has(id) && !isUsers) follow(edit, id, op.output, () => forward(pairsOf(i), operand), isDID);
    }
    if (cutsOf(at(edit.tensors, op.output)) > cutsOf(at(before, op.output))) cutLate.add(op.output);
  }
}

/** Whether a tensor takes a type that an axis is offered, as a whole (`isWhole`) or on a part. */
export type TypeOffer = (type: ParallelType, isWhole: boolean) => boolean;

export const allTypes: TypeOffer = () => true;
export const chunksOnly: TypeOffer = (type, isWhole) => type === "Stream" && !isWhole;

/** An axis of the tensor that offers its sharding, and its image in the tensor that takes it. */
export interface Image {
  readonly from: IterDomain;
  readonly to: IterDomain;
  readonly outermost: boolean;
}

function forward(pairs: readonly AxisPair[], operand: number): readonly Image[] {
  return imagesOn(pairs, operand, ({ producer, consumer }) => ({ from: producer, to: consumer }));
}

export function backward(pairs: readonly AxisPair[], operand: number): readonly Image[] {
  return imagesOn(pairs, operand, ({ producer, consumer }) => ({ from: consumer, to: producer }));
}

/** A broadcast axis and the axis that it is broadcast to do not follow each other. */
function imagesOn(
  pairs: readonly AxisPair[],
  operand: number,
  ends: (pair: AxisPair) => Pick<Image, "from" | "to">,
): readonly Image[] {
  return pairs.flatMap((pair) =>
    pair.operand === operand && !pair.broadcast ? [{ ...ends(pair), outermost: pair.outermost }] : [],
  );
}

/** Gives the tensor `target` what the tensor `reference` has: its mesh, and the types that `offers` accepts. */
export function follow(
  edit: TensorEdit,
  reference: TensorId,
  target: TensorId,
  imagesOn: () => readonly Image[],
  offers: TypeOffer,
): void {
  const source = at(edit.tensors, reference);
  const tensor = at(edit.tensors, target);
  const { mesh } = source;
  const taken = new Set<ParallelType>(["Serial"]);
  for (const { iterType, parallelType } of tensor.domain.loop) {
    if (iterType !== "reduction" || !isDID(parallelType)) taken.add(parallelType);
  }
  const fits = (type: ParallelType): boolean =>
    !isDID(type) ||
    tensor.mesh === null ||
    (mesh?.hasAxis(type) === true && tensor.mesh.hasAxis(type) && tensor.mesh.size(type) === mesh.size(type));
  let { domain } = tensor;
  const isOffered = ({ parallelType: type }: IterDomain): boolean =>
    !taken.has(type) && (offers(type, true) || offers(type, false)) && fits(type);
  const images = source.domain.loop.some(isOffered) ? imagesOn() : [];
  for (const image of images) {
    const own = cutOf(source.domain, image.from);
    const all = image.outermost ? inParts(own) : own;
    const chosen = withTypes(all, (type) => offers(type, all.parts.length === 1) && !taken.has(type) && fits(type));
    if (!isCut(chosen)) continue;
    const wanted = rescaled(chosen, image.to.extent);
    // Parts of the outermost axes of a reshape are alike only if the parts divide both.
    if (image.outermost && !(dividesEvenly(chosen) && dividesEvenly(wanted))) continue;
    const sharded = addParts(edit, domain, image.to, wanted);
    domain = sharded.domain;
    for (const type of sharded.added) taken.add(type);
  }
  if (domain === tensor.domain && (tensor.mesh !== null || mesh === null)) return;
  edit.tensors[target] = placedAs(source, tensor, domain, tensor.mesh ?? mesh);
}

/** The tensor with the domain and mesh; messages about its Stream name the call that put Stream on `source`. */
function placedAs(source: Tensor, tensor: Tensor, domain: TensorDomain, mesh: DeviceMesh | null): Tensor {
  const placed = { ...tensor, domain, mesh };
  const streamOf = streamAxis(tensor) === null && streamAxis(placed) !== null ? streamCallOf(source) : undefined;
  return streamOf === undefined ? placed : { ...placed, origin: { ...tensor.origin, streamOf } };
}
