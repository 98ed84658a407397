/**
 * Shares a matmul or linear along its contracted axis where that moves fewer bytes than gathering an operand.
 *
 *   y[DIDx M, N] = matmul(x[DIDx M, K], w[DIDx K, N]), M small
 * becomes
 *   y[DIDx M, N, rDIDx K] = matmul(x, w)
 *
 * split-over-devices.ts then exchanges x for x[M, DIDx K], and a ReduceScatter gives y, where w would be gathered. A
 * type on the reduced axis of the output says so, as nvFuser's propagation writes it. Both ways are lowered and their
 * bytes compared (moved-bytes.ts); of ways with equal cost the op stays as it is. Extents must be numbers.
 */
import { isDID, type Tensor, type TensorId } from "../../ir/domain.ts";
import { type FusionData, readOnceOf } from "../../ir/fusion-data.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { LinearOp, MatmulOp, Op } from "../../ir/ops/op.ts";
import { cutOf, isCut, withTypes } from "../../ir/parts.ts";
import { at } from "../../support/invariant.ts";
import { type ModelledAxis, redomain } from "../edit/split-axes.ts";
import type { TensorEdit } from "../edit/tensor-edit.ts";
import { sharedPlaces } from "./device-shares.ts";
import { costOf, excerpt, type Moves, movesOf } from "./moved-bytes.ts";
import type { Routing } from "./routing.ts";
import { reshardedOperands, sameMesh } from "./sharding.ts";
import { streamAxis } from "../../ir/stream.ts";

/** Gives the function that weighs a contraction of the Fusion. `written`: as it is in the Fusion. */
export function weighing(fusion: FusionData): (routing: Routing, op: MatmulOp | LinearOp, written: Op) => void {
  const hasOneReader = oneReader(fusion);
  return (routing, op, written) => {
    // What others need as well is gathered anyway.
    const moved = reshardedOperands(op, routing.tensors);
    if (moved.length === 0 || !moved.every(({ operand }) => hasOneReader(at(written.inputs, operand)))) return;
    const shared = cheapestShare(routing, op);
    if (shared !== null) routing.tensors[op.output] = shared;
  };
}

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
function cheapestShare(routing: Routing, op: MatmulOp | LinearOp): Tensor | null {
  const { tensors, fusion, options } = routing;
  const output = at(tensors, op.output);
  if (output.mesh === null || sharedPlaces(op, tensors) !== null) return null;
  // A loop over chunks hides what moves.
  if ([...op.inputs, op.output].some((id) => streamAxis(at(tensors, id)) !== null)) return null;
  const ways = waysToShare(op, routing, output);
  const given = ways.length === 0 ? null : movesOf(excerpt(fusion, [op], tensors), options);
  if (given === null) return null;
  let best: { readonly tensor: Tensor | null; readonly moves: Moves } = { tensor: null, moves: given };
  for (const tensor of ways) {
    const moves = movesOf(
      { ...excerpt(fusion, [op], tensors.with(op.output, tensor)), iterDomainCount: routing.iterDomainCount },
      options,
    );
    const isCheaper = moves !== null && moves.bytes <= given.bytes && costOf(moves) < costOf(best.moves);
    if (isCheaper) best = { tensor, moves };
  }
  return best.tensor;
}

/** The output with its contracted axis cut as each operand has it. */
function waysToShare(op: MatmulOp | LinearOp, edit: TensorEdit, output: Tensor): readonly Tensor[] {
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
