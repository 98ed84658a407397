/**
 * Places cotangents like the tensors that they are the cotangents of, where the user placed these: on the same devices,
 * with the same parts of each axis. Stream is left out, because the backward pass chooses its own chunks.
 *
 * `gradients` says which tensor is the cotangent of which, and which ops read it as such (ir/fusion-data.ts). A tensor
 * that is the cotangent of several, differently placed ones is copied for the readers of all but one.
 */
import {
  isDID,
  type IterDomain,
  type ParallelType,
  type Tensor,
  type TensorDomain,
  type TensorId,
  withoutReductions,
} from "../../ir/domain.ts";
import type { Derivation, FusionData } from "../../ir/fusion-data.ts";
import { freeDimension } from "../../ir/gradients/partial.ts";
import { layout, layoutOf, sameLayout } from "../../ir/layout.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import { call } from "../../ir/ops/call.ts";
import { isContraction, type Op, outputsOf } from "../../ir/ops/op.ts";
import { type CutAxis, cutOf, loopAxesOf, overlay, wholeAxis, withTypes } from "../../ir/parts.ts";
import { at } from "../../support/invariant.ts";
import { recut, addSerialTensor, editFusion, type FusionEdit, type TensorEdit } from "../edit/tensor-edit.ts";
import { moveTo, sharesContracted } from "../routes/layouts.ts";

const place = call("gradients");

export function placeCotangents(fusion: FusionData): FusionData {
  const { derivations = [] } = fusion;
  if (derivations.length === 0 || fusion.tensors.every(({ mesh }) => mesh === null)) return fusion;
  const edit = editFusion(fusion);
  edit.ops.push(...fusion.ops);
  for (const derivation of derivations) placeDerivation(edit, derivation);
  if (
    edit.tensors.every((tensor, i) => tensor === fusion.tensors[i]) &&
    edit.ops.every((op, i) => op === fusion.ops[i])
  )
    return fusion;
  return { ...fusion, ops: edit.ops, tensors: edit.tensors, iterDomainCount: edit.iterDomainCount };
}

function placeDerivation(edit: FusionEdit, { cotangents, wrt, gradients, uses, ops }: Derivation): void {
  const wanted = new Set(wrt);
  const sums = sumsOverDevices(ops, edit.tensors);
  gradients.forEach((gradient, i) => {
    if (gradient !== null && at(edit.tensors, gradient).mesh === null) placeLike(edit, gradient, at(wrt, i));
  });
  const versions = new Map<TensorId, TensorId>();
  for (const { primal, cotangent, passedFrom, readers } of uses) {
    const { mesh } = at(edit.tensors, primal);
    const wantedPlace = layoutOf(at(edit.tensors, primal));
    let version = (passedFrom === null ? undefined : versions.get(passedFrom)) ?? cotangent;
    const own = at(edit.tensors, version);
    const staysWhole = !wanted.has(primal) && sums.has(primal) && isWholeOn(own, mesh);
    const ownPlace = layoutOf(own);
    const isPlaced = ownPlace !== null && wantedPlace !== null && sameLayout(ownPlace, wantedPlace);
    if (wantedPlace !== null && !isPlaced && !staysWhole) {
      if (own.mesh === null && !cotangents.includes(version)) placeLike(edit, version, primal);
      else version = copyFor(edit, version, primal, readers) ?? version;
    }
    versions.set(primal, version);
    if (version === cotangent) continue;
    edit.ops.forEach((op, i) => {
      if (op.output < readers.from || op.output >= readers.to || !op.inputs.includes(cotangent)) return;
      edit.ops[i] = { ...op, inputs: op.inputs.map((id) => (id === cotangent ? version : id)) };
    });
  }
}

/** A copy of the tensor before its first reader, placed like the primal. Null if no op reads it. */
function copyFor(
  edit: FusionEdit,
  source: TensorId,
  primal: TensorId,
  { from, to }: { readonly from: number; readonly to: number },
): TensorId | null {
  const first = edit.ops.findIndex(({ output }) => output >= from && output < to);
  if (first < 0) return null;
  const tensor = at(edit.tensors, source);
  const { id: output } = addSerialTensor(edit, tensor, withoutReductions(tensor.domain.logical), null);
  edit.ops.splice(first, 0, { kind: "Set", inputs: [source], output });
  placeLike(edit, output, primal);
  return output;
}

/** Places the tensor like the primal. One with an axis more in front has a part for each device of a dimension. */
function placeLike(edit: FusionEdit, id: TensorId, primal: TensorId): void {
  const like = at(edit.tensors, primal);
  const tensor = at(edit.tensors, id);
  const axes = (each: Tensor): readonly IterDomain[] => withoutReductions(each.domain.logical);
  const added = axes(tensor).length - axes(like).length;
  const to = layoutOf(like);
  if (to === null) return;
  const parts = axes(tensor)
    .slice(0, added)
    .map(({ extent }) => wholeAxis(extent, freeDimension(like, place).type));
  moveTo(edit, tensor, axes(tensor), layout(to.mesh, [...parts, ...to.axes]), null);
}

/**
 * Tensors that are, perhaps by sets and additions, results of a contraction along an axis that devices share. A
 * cotangent that every device has in full stays so for them: the gradients of a row-parallel linear would gather it.
 */
function sumsOverDevices(ops: readonly Op[], tensors: readonly Tensor[]): ReadonlySet<TensorId> {
  const sums = new Set<TensorId>();
  for (const op of ops) {
    const isSum =
      op.kind === "Set" || (op.kind === "Binary" && op.op === "add")
        ? op.inputs.some((input) => sums.has(input))
        : isContraction(op) && sharesContracted(op, axisMap(op, tensors), tensors);
    if (isSum) for (const id of outputsOf(op)) sums.add(id);
  }
  return sums;
}

function isWholeOn({ domain, mesh }: Tensor, devices: Tensor["mesh"]): boolean {
  if (mesh === null || devices === null || !mesh.equals(devices)) return false;
  return !domain.loop.some(({ parallelType }) => isDID(parallelType));
}

// Puts the types of one axis on another.

/** A domain under change, and the types that an axis of it has got. */
interface TypedDomain {
  readonly domain: TensorDomain;
  readonly added: readonly ParallelType[];
}

/** Puts the types of `wanted` on an axis, outermost first, up to the first that crosses what the axis has. */
export function addParts(edit: TensorEdit, domain: TensorDomain, axis: IterDomain, wanted: CutAxis): TypedDomain {
  const types = wanted.parts.flatMap(({ type }) => (type === "Serial" ? [] : [type]));
  const isMerged = !loopAxesOf(domain, axis).some(({ id }) => domain.loop.some((own) => own.id === id));
  for (let count = isMerged ? 0 : types.length; count > 0; count--) {
    const added: readonly ParallelType[] = types.slice(0, count);
    const cut = overlay(
      cutOf(domain, axis),
      withTypes(wanted, (type) => added.includes(type)),
    );
    const made = cut === null || !isCounted(cut) ? null : recut(edit, domain, axis, cut);
    if (made !== null) return { domain: made, added };
  }
  return { domain, added: [] };
}

/** No loop runs over chunks of parts that nothing spreads. */
function isCounted({ parts }: CutAxis): boolean {
  const stream = parts.findIndex(({ type }) => type === "Stream");
  return parts.slice(0, Math.max(stream, 0)).every(({ type }) => type !== "Serial");
}
