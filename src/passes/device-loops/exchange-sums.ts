/**
 * With the option `deviceLoops`, turns the sum of a contraction's partial results, scattered over the devices, into an
 * exchange and additions in the kernels that read the sum:
 *
 *   T2[DIDx D, M/D, N, r] = reduction(T1[M, N, DIDx], {2})
 * becomes
 *   T3[DIDx D, M/D, N, D] = Set(T1)
 *   T2[DIDx D, M/D, N] = add(select(T3, 2, 0), select(T3, 2, 1))
 *
 * In peers' memory the partial results then move as copies, which need no SMs beside a GEMM, and a sum that one kernel
 * reads need not be written. The bits are those of a ReduceScatter.
 */
import { type TensorId, withoutReductions } from "../../ir/domain.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { Op, ReductionOp } from "../../ir/ops/op.ts";
import { cutOf } from "../../ir/parts.ts";
import { constant } from "../../ir/scalar/scalar.ts";
import { streamAxis } from "../../ir/stream.ts";
import { accumulatorOf } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import { addShares, redomain } from "../edit/split-axes.ts";
import { editFusion, type FusionEdit, type TensorEdit } from "../edit/tensor-edit.ts";
import type { Pass } from "../pass.ts";
import { addCopy } from "../routes/layouts.ts";
import { hasDeviceLoops, readOnce, scatteredParts } from "./scattered-parts.ts";

/** Sums of more shares are one reduction, a kernel of its own. */
const mostSummands = 8;

export const exchangeSums: Pass<"checked", "checked"> = {
  name: "exchange-sums",
  from: "checked",
  to: "checked",
  run: (fusion, { options }) => {
    if (!hasDeviceLoops(options)) return fusion;
    const edit = editFusion(fusion);
    const made = readOnce(fusion);
    for (const op of fusion.ops) {
      if (op.kind !== "Reduction" || !addExchange(edit, op, made)) edit.ops.push(op);
    }
    return edit.tensors.length === fusion.tensors.length ? fusion : { ...fusion, ...edit };
  },
};

/** Adds the exchange and the additions; false for what is no scattered sum of a contraction's partial results. */
function addExchange(edit: FusionEdit, op: ReductionOp, made: ReadonlyMap<TensorId, Op>): boolean {
  const { tensors } = edit;
  const output = at(tensors, op.output);
  const [number, ...others] = op.axes;
  if (op.op !== "sum" || number === undefined || others.length > 0) return false;
  if (streamAxis(output) !== null) return false;
  const parts = at(tensors, at(op.inputs, 0));
  const devices = at(withoutReductions(parts.domain.logical), number);
  const reduced = axisMap(op, tensors).find(({ producer }) => producer.id === devices.id)?.consumer;
  const found = scatteredParts(op, devices, made, tensors);
  if (found === null || reduced === undefined) return false;
  const count = parts.mesh?.size(found.shard.type) ?? 0;
  if (count > mostSummands) return false;
  const shares = addShares(edit, output, reduced, "Serial");
  redomain(
    edit,
    output,
    withoutReductions(output.domain.logical).map((axis) => ({ axis, model: cutOf(output.domain, axis) })),
  );
  edit.ops.push(
    { kind: "Set", inputs: op.inputs, output: shares.id },
    ...sumOf(edit, shares.id, number, count, output.id),
  );
  return true;
}

/**
 * Adds the indices of an axis in order, with the bits of a reduction. As binary ops, the sums are computed in the kernels
 * that read them.
 */
function sumOf(edit: TensorEdit, source: TensorId, axis: number, count: number, output: TensorId): readonly Op[] {
  const ops: Op[] = [];
  const like = at(edit.tensors, output);
  const wide = accumulatorOf(like.dtype);
  // The sum of two is rounded once in any case.
  const dtype = count > 2 ? wide : like.dtype;
  const added = (as = dtype): TensorId => {
    const { id } = addCopy(edit, like);
    edit.tensors[id] = { ...at(edit.tensors, id), dtype: as };
    return id;
  };
  const shares = Array.from({ length: count }, () => added(like.dtype));
  // All of them come first, so that nothing stands between the additions and the kernel that they join.
  for (const [index, share] of shares.entries())
    ops.push({ kind: "Select", axis, index: constant(index), inputs: [source], output: share });
  let sum: TensorId | null = null;
  for (const [index, share] of shares.entries()) {
    const term = dtype === like.dtype ? share : added();
    if (term !== share) ops.push({ kind: "Cast", to: dtype, inputs: [share], output: term });
    const isLast = index === count - 1 && dtype === like.dtype;
    const next: TensorId = sum === null ? term : isLast ? output : added();
    if (sum !== null) ops.push({ kind: "Binary", op: "add", inputs: [sum, term], output: next });
    sum = next;
  }
  if (sum !== null && sum !== output) ops.push({ kind: "Cast", to: like.dtype, inputs: [sum], output });
  return ops;
}
