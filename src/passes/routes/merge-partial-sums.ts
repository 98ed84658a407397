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
import { readOnceOf } from "../../ir/fusion-data.ts";
import { layoutOf, sameLayout } from "../../ir/layout.ts";
import type { ReductionOp } from "../../ir/ops/op.ts";
import { sameScalar } from "../../ir/scalar/fold.ts";
import { typeOfWhole } from "../../ir/shards.ts";
import { at, invariant } from "../../support/invariant.ts";
import { editFusion, type FusionEdit } from "../edit/tensor-edit.ts";
import type { Pass } from "../pass.ts";
import { withoutDeadOps } from "../prepare/remove-dead-ops.ts";
import { sameChunks, streamPart } from "../../ir/stream.ts";
import { type DeviceParts, reduceOverDevices } from "./device-reductions.ts";
import { addCopy } from "./layouts.ts";
import { isResharding, sameMesh } from "./sharding.ts";

export const mergePartialSums: Pass<"checked", "checked"> = {
  name: "merge-partial-sums",
  from: "checked",
  to: "checked",
  run: (fusion, { options }) => {
    if (options.nvfuserLimits) return fusion;
    const edit = editFusion(fusion);
    const readOnce = readOnceOf(fusion);
    const sums: Sums = new Map();
    for (const op of fusion.ops) {
      const first = edit.ops.length;
      const [a, b] = op.inputs;
      const isAdd = op.kind === "Binary" && op.op === "add" && op.scalar === undefined;
      if (isAdd && a !== undefined && b !== undefined) addAll(edit, sums, [a, b], op.output);
      else edit.ops.push(op);
      for (const made of edit.ops.slice(first)) {
        const isNew = made.output >= fusion.tensors.length || readOnce.has(made.output);
        if (isNew && made.kind === "Reduction" && isSumOverDevices(made, edit.tensors)) sums.set(made.output, made);
      }
    }
    return edit.tensors.length === fusion.tensors.length ? fusion : withoutDeadOps({ ...fusion, ...edit });
  },
};

/** Sums over devices that one op reads, by their results. */
type Sums = Map<TensorId, ReductionOp>;

/** The partial results of two sums over the same devices. */
interface Parts {
  readonly a: TensorId;
  readonly b: TensorId;
  readonly axis: number;
}

function isSumOverDevices(op: ReductionOp, tensors: readonly Tensor[]): boolean {
  return op.op === "sum" && op.axes.length === 1 && isResharding(op, tensors);
}

/** What to add in place of the sums `a` and `b`, if one collective can then make `output`; otherwise null. */
function partsOf(tensors: readonly Tensor[], sums: Sums, a: TensorId, b: TensorId, output: TensorId): Parts | null {
  const [first, second] = [sums.get(a), sums.get(b)];
  const [axis] = first?.axes ?? [];
  if (first === undefined || second === undefined || axis === undefined || second.axes[0] !== axis) return null;
  const [p, q] = [first, second].map(({ inputs }) => at(tensors, at(inputs, 0)));
  const results = [a, b, output].map((id) => at(tensors, id));
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

/** Appends the sum of two tensors, by one collective if both are sums over the same devices. */
function addAll(edit: FusionEdit, sums: Sums, inputs: readonly [TensorId, TensorId], output: TensorId): void {
  const parts = partsOf(edit.tensors, sums, ...inputs, output);
  if (parts === null) {
    edit.ops.push({ kind: "Binary", op: "add", inputs, output });
    return;
  }
  const { a, b, axis } = parts;
  const sum = addCopy(edit, at(edit.tensors, a)).id;
  // Partial results over one DID type may be sums over another one.
  addAll(edit, sums, [a, b], sum);
  reduceOverDevices(
    edit,
    { tensor: sum, slots: slotsOf(at(edit.tensors, sum), axis) },
    "sum",
    at(edit.tensors, output),
  );
}

/** The axes of a tensor of partial results, of which axis number `axis` numbers the devices. */
function slotsOf(parts: Tensor, axis: number): DeviceParts["slots"] {
  const axes = withoutReductions(parts.domain.logical);
  const type = typeOfWhole(parts, at(axes, axis));
  invariant(type !== null, "an axis numbers devices", { parts, axis });
  return axes.map((_, number) => (number === axis ? type : number - (number > axis ? 1 : 0)));
}
