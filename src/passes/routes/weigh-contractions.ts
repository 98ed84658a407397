/**
 * Shares a matmul or linear along its contracted axis where that moves fewer bytes than gathering an operand.
 *
 *   y[DIDx M, N] = matmul(x[DIDx M, K], w[DIDx K, N]), M small
 * becomes
 *   y[DIDx M, N, rDIDx K] = matmul(x, w)
 *
 * split-partial-reductions then exchanges x for x[M, DIDx K], and a ReduceScatter gives y, where w would be gathered. A
 * type on the reduced axis of the output says so, as nvFuser's propagation writes it. Both ways are lowered and their
 * bytes compared (moved-bytes.ts); of ways with equal cost the op stays as it is. Extents must be numbers.
 */
import { isDID, type Tensor, type TensorId } from "../../ir/domain.ts";
import { type FusionData, readOnceOf } from "../../ir/fusion-data.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { LinearOp, MatmulOp } from "../../ir/ops/op.ts";
import { cutOf, isCut, withTypes } from "../../ir/parts.ts";
import { at } from "../../support/invariant.ts";
import { type ModelledAxis, redomain } from "../edit/split-axes.ts";
import { editFusion, type FusionEdit } from "../edit/tensor-edit.ts";
import type { Pass, PassContext } from "../pass.ts";
import { sharedPlaces } from "./device-shares.ts";
import { costOf, excerpt, type Moves, movesOf } from "./moved-bytes.ts";
import { reshardedOperands, sameMesh } from "./sharding.ts";
import { streamAxis } from "../../ir/stream.ts";

export const weighContractions: Pass<"checked", "checked"> = {
  name: "weigh-contractions",
  from: "checked",
  to: "checked",
  run: (fusion, context) => {
    if (context.options.nvfuserLimits) return fusion;
    const edit: FusionEdit = editFusion(fusion);
    const hasOneReader = oneReader(fusion);
    for (const op of fusion.ops) {
      if (op.kind !== "Matmul" && op.kind !== "Linear") continue;
      // What others need as well is gathered anyway.
      const moved = reshardedOperands(op, edit.tensors);
      if (moved.length === 0 || !moved.every(({ producer: { id } }) => hasOneReader(id))) continue;
      const shared = cheapestShare(fusion, op, edit, context);
      if (shared !== null) edit.tensors[op.output] = shared;
    }
    const changed = edit.tensors.some((tensor, i) => tensor !== fusion.tensors[i]);
    return changed ? { ...fusion, tensors: edit.tensors, iterDomainCount: edit.iterDomainCount } : fusion;
  },
};

/** Whether one op alone reads a tensor, and what the tensor is a view of. */
function oneReader(fusion: FusionData): (id: TensorId) => boolean {
  const readOnce = readOnceOf(fusion);
  const producers = new Map(fusion.ops.map((op) => [op.output, op]));
  const hasOne = (id: TensorId): boolean => {
    const producer = producers.get(id);
    const isView = producer?.kind === "Reshape" || producer?.kind === "Permute" || producer?.kind === "Set";
    return readOnce.has(id) && (!isView || hasOne(at(producer.inputs, 0)));
  };
  return hasOne;
}

/** The output with DID types on its reduced axis, if that is cheaper than the output as it is; otherwise null. */
function cheapestShare(
  fusion: FusionData,
  op: MatmulOp | LinearOp,
  edit: FusionEdit,
  context: PassContext,
): Tensor | null {
  const { tensors } = edit;
  const output = at(tensors, op.output);
  if (output.mesh === null || sharedPlaces(op, tensors) !== null) return null;
  // A loop over chunks hides what moves.
  if ([...op.inputs, op.output].some((id) => streamAxis(at(tensors, id)) !== null)) return null;
  const ways = waysToShare(op, edit, output);
  const given = ways.length === 0 ? null : movesOf(excerpt(fusion, [op], tensors), context);
  if (given === null) return null;
  let best: { readonly tensor: Tensor | null; readonly moves: Moves } = { tensor: null, moves: given };
  for (const tensor of ways) {
    const moves = movesOf(
      { ...excerpt(fusion, [op], tensors.with(op.output, tensor)), iterDomainCount: edit.iterDomainCount },
      context,
    );
    const isCheaper = moves !== null && moves.bytes <= given.bytes && costOf(moves) < costOf(best.moves);
    if (isCheaper) best = { tensor, moves };
  }
  return best.tensor;
}

/** The output with its contracted axis cut as each operand has it. */
function waysToShare(op: MatmulOp | LinearOp, edit: FusionEdit, output: Tensor): readonly Tensor[] {
  const pairs = axisMap(op, edit.tensors).filter(({ consumer }) => consumer.iterType === "reduction");
  return pairs.flatMap(({ operand, producer, consumer }): readonly Tensor[] => {
    const source = at(edit.tensors, at(op.inputs, operand));
    if (!sameMesh(source.mesh, output.mesh)) return [];
    const model = withTypes(cutOf(source.domain, producer), isDID);
    if (!isCut(model)) return [];
    const axes = output.domain.logical.map((axis): ModelledAxis =>
      axis.id === consumer.id ? { axis, model } : { axis, model: cutOf(output.domain, axis) },
    );
    redomain(edit, output, axes);
    const made = at(edit.tensors, output.id);
    edit.tensors[output.id] = output;
    return [made];
  });
}
