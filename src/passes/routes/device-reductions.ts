/**
 * Reduces the devices' partial results over the devices, one DID type at a time. A type that the output shards comes
 * first: its reduce-scatter leaves less data for the next. Of these the innermost comes first, as devices that differ
 * along DIDx are the nearest to each other.
 *
 *   T1 = sum over DIDx and DIDy of T0[a, DIDy, DIDx]
 * becomes
 *   T2[a, DIDy, rDIDx] = sum(T0, {2}); T1[a, rDIDy] = sum(T2, {1})
 */
import {
  type DIDType,
  didTypes,
  type IterDomain,
  type Tensor,
  type TensorId,
  withoutReductions,
} from "../../ir/domain.ts";
import { addShare, keepShares, layoutOf } from "../../ir/layout.ts";
import type { ReductionOpType } from "../../ir/ops/op.ts";
import { at, invariant } from "../../support/invariant.ts";
import { type ModelledAxis, redomain } from "../edit/split-axes.ts";
import { addAxis, addSerialTensor, type FusionEdit } from "../edit/tensor-edit.ts";
import { streamPart } from "../../ir/stream.ts";
import { moveTo, streamOn } from "./layouts.ts";
import { cutOf } from "../../ir/parts.ts";

/**
 * A tensor of partial results. Each of its axes is an axis of the op's output, by number, or numbers the devices of a
 * DID type.
 */
export interface DeviceParts {
  readonly tensor: TensorId;
  readonly slots: readonly (number | DIDType)[];
}

/** Reduces `parts` into `output`. The output keeps its axes, and gets a reduction axis for the last DID type. */
export function reduceOverDevices(edit: FusionEdit, parts: DeviceParts, op: ReductionOpType, output: Tensor): void {
  const left = new Set(parts.slots);
  const pending = didTypes.filter((type) => left.has(type));
  const kept = layoutOf(output)?.shares;
  const type = pending.find((candidate) => kept?.has(candidate)) ?? pending[0];
  invariant(type !== undefined, "partial results are left to reduce", parts);
  const axis = parts.slots.indexOf(type);
  const reduced = at(withoutReductions(at(edit.tensors, parts.tensor).domain.logical), axis);
  const slots = parts.slots.toSpliced(axis, 1);
  const target = pending.length === 1 ? withReducedAxis(edit, output, axis, reduced) : next(edit, parts, type, output);
  edit.ops.push({ kind: "Reduction", op, axes: [axis], inputs: [parts.tensor], output: target });
  if (pending.length > 1) reduceOverDevices(edit, { tensor: target, slots }, op, output);
}

function withReducedAxis(edit: FusionEdit, output: Tensor, position: number, { extent }: IterDomain): TensorId {
  const kept = withoutReductions(output.domain.logical).map((axis): ModelledAxis => ({
    axis,
    model: cutOf(output.domain, axis),
  }));
  const reduced = addAxis(edit, { extent, iterType: "reduction" });
  redomain(edit, output, kept.toSpliced(position, 0, { axis: reduced, model: null }));
  return output.id;
}

/**
 * The tensor after the reduction of `type`, before that of other types. It is placed like the operand, and scattered
 * along `type` as the output is.
 */
function next(edit: FusionEdit, { tensor, slots }: DeviceParts, type: DIDType, output: Tensor): TensorId {
  const source = at(edit.tensors, tensor);
  const own = withoutReductions(source.domain.logical);
  const place = layoutOf(source);
  invariant(place !== null, "partial results have a mesh", { tensor });
  const axes = own.map((axis, i): IterDomain => (slots[i] === type ? { ...axis, iterType: "reduction" } : axis));
  const target = addSerialTensor(edit, output, axes, place.mesh, "partial sum");
  const kept = keepShares(place, (share) => share.type !== type);
  const outputAxes = withoutReductions(output.domain.logical);
  const scattered = output.mesh?.equals(place.mesh) === true ? layoutOf(output)?.shares.get(type) : undefined;
  const to = scattered === undefined ? null : addShare(kept, { ...scattered, axis: slots.indexOf(scattered.axis) });
  const stream = streamPart(output);
  const streamed = slots.findIndex((slot) => typeof slot === "number" && outputAxes[slot]?.id === stream?.axis.id);
  const chunks = streamed < 0 ? null : at(target.domain.logical, streamed);
  moveTo(edit, target, target.domain.logical, to ?? kept, streamOn(stream, chunks));
  return target.id;
}
