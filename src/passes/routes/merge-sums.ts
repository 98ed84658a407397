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
import { type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import { layoutOf, sameLayout } from "../../ir/layout.ts";
import type { Op, ReductionOp } from "../../ir/ops/op.ts";
import { sameScalar } from "../../ir/scalar/fold.ts";
import { typeOfWhole } from "../../ir/shards.ts";
import { sameChunks, streamPart } from "../../ir/stream.ts";
import { at, invariant } from "../../support/invariant.ts";
import { type DeviceParts, reduceOverDevices } from "./device-reductions.ts";
import { addCopy } from "./layouts.ts";
import type { Routing } from "./routing.ts";
import { isResharding, sameMesh } from "./sharding.ts";

/** Whether the op waits until it is known whether another sum is added to its own. */
export function isSumOverDevices({ tensors, readOnce, late }: Routing, op: Op): boolean {
  const isSum = op.kind === "Reduction" && op.op === "sum" && op.axes.length === 1;
  return isSum && (readOnce.has(op.output) || late.has(op.output)) && isResharding(op, tensors);
}

/** Adds ops that add two sums over the same devices by one collective, in place of an addition; false for other ops. */
export function mergeSums(routing: Routing, op: Op): boolean {
  const { tensors, ops } = routing;
  const parts = op.kind === "Binary" && op.op === "add" && op.scalar === undefined ? partsOf(routing, op) : null;
  if (parts === null) return false;
  const sum = addCopy(routing, at(tensors, parts.a)).id;
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
