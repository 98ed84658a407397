/**
 * Adds partial sums before the devices reduce them, so that one collective carries both.
 *
 *   T5 = reduction(T3[M, N, DIDx], {2}); T6 = reduction(T4[M, N, DIDx], {2}); T7 = add(T5, T6)
 * becomes
 *   T8[M, N, DIDx] = add(T3, T4); T7 = reduction(T8, {2})
 *
 * The gradient of what two column-parallel linears read is such a sum. Megatron-LM and PyTorch's autograd add the
 * gradients before the collective, too.
 */
import {
  type DIDType,
  didTypes,
  type IterDomain,
  type Tensor,
  type TensorId,
  withoutReductions,
} from "../../ir/domain.ts";
import { addShare, keepShares, layoutOf, sameLayout } from "../../ir/layout.ts";
import type { Op, ReductionOp, ReductionOpType } from "../../ir/ops/op.ts";
import { cutOf } from "../../ir/parts.ts";
import { sameScalar } from "../../ir/scalar/fold.ts";
import { typeOfWhole } from "../../ir/shards.ts";
import { sameChunks, streamPart } from "../../ir/stream.ts";
import { at, invariant } from "../../support/invariant.ts";
import { type ModelledAxis, redomain, addAxis, addSerialTensor, type FusionEdit } from "../edit/tensor-edit.ts";
import { addCopy, moveTo, streamOn, isResharding, sameMesh } from "./layouts.ts";
import type { Routing } from "./routing.ts";

/** Whether the op waits until it is known whether another sum is added to its own. Devices may have several indices each. */
export function isSumOverDevices({ tensors, readOnce, late }: Routing, op: Op): boolean {
  if (op.kind !== "Reduction" || op.op !== "sum" || op.axes.length !== 1) return false;
  const parts = at(tensors, at(op.inputs, 0));
  const axis = at(withoutReductions(parts.domain.logical), at(op.axes, 0));
  if (typeOfWhole(parts, axis) === null) return false;
  return (readOnce.has(op.output) || late.has(op.output)) && isResharding(op, tensors);
}

/** Adds ops that add two sums over the same devices by one collective, in place of an addition; false for other ops. */
export function mergeSums(routing: Routing, op: Op): boolean {
  const { tensors, ops } = routing;
  const parts = op.kind === "Binary" && op.op === "add" && op.scalar === undefined ? partsOf(routing, op) : null;
  if (parts === null) return false;
  const sum = addCopy(routing, at(tensors, parts.a), "partial sum", at(tensors, op.output)).id;
  // Partial results over one DID type may be sums over another one: this addition is looked at, too.
  ops.push({ kind: "Binary", op: "add", inputs: [parts.a, parts.b], output: sum });
  const slots = slotsOf(at(tensors, sum), parts.axis);
  reduceOverDevices(routing, { tensor: sum, slots }, "sum", at(tensors, op.output));
  return true;
}

/** The partial results of two sums over the same devices. */
interface Parts {
  readonly a: TensorId;
  readonly b: TensorId;
  readonly axis: number;
}

/** What to add in place of the sums, if one collective can then make the output; otherwise null. */
function partsOf({ waiting, tensors }: Routing, { inputs, output }: Op): Parts | null {
  const sums = inputs.flatMap((id): readonly ReductionOp[] => {
    const op = waiting.get(id)?.op;
    return op?.kind === "Reduction" ? [op] : [];
  });
  const [first, second] = sums;
  const [axis] = first?.axes ?? [];
  if (first === undefined || second === undefined || axis === undefined || second.axes[0] !== axis) return null;
  const [p, q] = [first, second].map((sum) => at(tensors, at(sum.inputs, 0)));
  const results = [...inputs, output].map((id) => at(tensors, id));
  if (p === undefined || q === undefined || !liesAs(p, q)) return null;
  return results.every((each) => liesAs(each, at(results, 0))) && p.dtype === at(results, 0).dtype
    ? { a: p.id, b: q.id, axis }
    : null;
}

/** Whether the tensors have the same dtype, extents, mesh, shares and chunks. */
function liesAs(a: Tensor, b: Tensor): boolean {
  const [axes, others] = [a, b].map(({ domain }) => withoutReductions(domain.logical));
  if (axes === undefined || others === undefined || axes.length !== others.length) return false;
  if (a.dtype !== b.dtype || !sameMesh(a.mesh, b.mesh)) return false;
  if (!axes.every(({ extent }, i) => sameScalar(extent, at(others, i).extent))) return false;
  const [place, otherPlace] = [layoutOf(a), layoutOf(b)];
  if (place !== null && otherPlace !== null && !sameLayout(place, otherPlace)) return false;
  const [stream, other] = [streamPart(a), streamPart(b)];
  if (stream === null || other === null) return stream === other;
  const number = (list: typeof axes, id: number): number => list.findIndex((axis) => axis.id === id);
  return sameChunks(stream.chunks, other.chunks) && number(axes, stream.axis.id) === number(others, other.axis.id);
}

/** The axes of a tensor of partial results, of which axis number `axis` numbers the devices. */
function slotsOf(parts: Tensor, axis: number): DeviceParts["slots"] {
  const axes = withoutReductions(parts.domain.logical);
  const type = typeOfWhole(parts, at(axes, axis));
  invariant(type !== null, "an axis numbers devices", { parts, axis });
  return axes.map((_, number) => (number === axis ? type : number - (number > axis ? 1 : 0)));
}

// Reduces the devices' partial results over the devices, one DID type at a time. A type that the output shards comes
// first: its reduce-scatter leaves less data for the next. Of these the innermost comes first, as devices that differ
// along DIDx are the nearest to each other.
//
//   T1 = sum over DIDx and DIDy of T0[a, DIDy, DIDx]
// becomes
//   T2[a, DIDy, rDIDx] = sum(T0, {2}); T1[a, rDIDy] = sum(T2, {1})

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
