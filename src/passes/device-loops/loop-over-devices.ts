/**
 * With the option `deviceLoops`, puts the communication beside a contraction in a loop over the devices, as if the
 * program were annotated. The shards of a gathered operand become the chunks of the result, and the shards of a sum the
 * chunks of the partial results:
 *
 *   T2[M, N] = linear(T0[DIDx D, M/D, K], T1)             ->   T2[Stream D, M/D, N]
 *
 *   T3[M, N, DIDx] = linear(T0, T1)                       ->   T3[Stream D, M/D, N, DIDx]
 *   T4[DIDx D, M/D, N, D] = Set(T3)                       ->   T4[DIDx D, M/D, N, Stream D]
 *
 * The first is a gather: a device multiplies its own shard while the others arrive. The second is a reduce-scatter
 * (exchange-sums): it sends the partial result of a peer's shard while it makes the next one. Tensors that have Stream
 * stay as they are.
 */
import { axisParts, axisShards, type AxisShard, isWholeAxis } from "../../ir/axis-shards.ts";
import {
  isDID,
  type IterDomain,
  type ParallelType,
  type Tensor,
  type TensorId,
  withoutReductions,
} from "../../ir/domain.ts";
import { readersOf } from "../../ir/fusion-data.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { Op, ReductionOp, SetOp } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import { editFusion, modelOf, redomain, reparallelize, type SplitModel, type TensorEdit } from "../edit/tensor-edit.ts";
import type { Pass } from "../pass.ts";
import { hasDeviceLoops, keepsOneRun, readOnce, scatteredParts } from "./scattered-parts.ts";
import { isResharding, reshardedOperands, streamAxis } from "../reshard/sharding.ts";

export const loopOverDevices: Pass<"checked", "checked"> = {
  name: "loop-over-devices",
  from: "checked",
  to: "checked",
  run: (fusion, { options }) => {
    if (!hasDeviceLoops(options)) return fusion;
    const edit = editFusion(fusion);
    const once = readOnce(fusion);
    const readers = readersOf(fusion);
    for (const op of fusion.ops) {
      if (op.kind === "Linear" || op.kind === "Matmul") loopOverShards(edit, op);
      else if (op.kind === "Reduction") loopOverSum(edit, op, once);
      else if (op.kind === "Set") {
        loopOverReaders(edit, op, readers.get(op.output) ?? []);
        loopOverExchange(edit, op, once);
      }
    }
    return edit.tensors.every((tensor, id) => tensor === fusion.tensors[id])
      ? fusion
      : { ...fusion, ...edit, ops: fusion.ops };
  },
};

/** Chunks of the result for the shards of the one operand that is gathered. */
function loopOverShards(edit: TensorEdit, op: Op): void {
  const { tensors } = edit;
  const output = at(tensors, op.output);
  if (hasStream(op, tensors)) return;
  const [change, ...others] = reshardedOperands(op, tensors);
  if (change === undefined || others.length > 0 || change.meshDiffers) return;
  const { operand, producer, types } = change;
  const [type, ...further] = types;
  const shard = axisShards(producer).find((each) => each.type === type);
  if (shard === undefined || further.length > 0 || !keepsOneRun(producer, shard)) return;
  const pair = axisMap(op, tensors).find((each) => each.operand === operand && each.producer.id === shard.axis.id);
  if (pair === undefined || pair.broadcast || pair.consumer.iterType === "reduction") return;
  // A matmul reads a slice of a batch, not of the rows or columns of a batch.
  if (isWholeAxis(shard) && op.kind === "Matmul") return;
  cutLike(edit, output, pair.consumer, chunksOf(producer, shard));
}

/** Chunks of a gather, and of the results of the contractions that read it and keep the gathered axis. */
function loopOverReaders(edit: TensorEdit, op: SetOp, readers: readonly Op[]): void {
  const { tensors } = edit;
  const gathered = at(tensors, op.output);
  const [change] = reshardedOperands(op, tensors);
  if (change === undefined || change.meshDiffers || hasStream(op, tensors)) return;
  const { producer, types } = change;
  const [type, ...further] = types;
  const shard = axisShards(producer).find((each) => each.type === type);
  if (shard === undefined || further.length > 0 || !keepsOneRun(producer, shard)) return;
  const whole = axisMap(op, tensors).find((each) => each.producer.id === shard.axis.id)?.consumer;
  if (whole === undefined || axisShards(gathered).some((each) => each.type === type || each.axis.id === whole.id))
    return;
  let isRead = false;
  for (const reader of readers) {
    if (reader.kind !== "Linear" && (reader.kind !== "Matmul" || isWholeAxis(shard))) continue;
    if (hasStream(reader, tensors) || isResharding(reader, tensors)) continue;
    const pair = axisMap(reader, tensors).find((each) => each.producer.id === whole.id && !each.broadcast);
    if (pair === undefined || pair.consumer.iterType === "reduction") continue;
    cutLike(edit, at(tensors, reader.output), pair.consumer, chunksOf(producer, shard));
    isRead = true;
  }
  if (isRead) cutLike(edit, gathered, whole, chunksOf(producer, shard));
}

/** Chunks of partial results that the devices exchange, for what each of them keeps. */
function loopOverExchange(edit: TensorEdit, op: SetOp, made: ReadonlyMap<TensorId, Op>): void {
  const { tensors } = edit;
  if (streamAxis(at(tensors, op.output)) !== null) return;
  const pairs = axisMap(op, tensors);
  for (const { producer, consumer } of pairs) {
    if (loopOverParts(edit, op, producer, made)) {
      const output = at(tensors, op.output);
      edit.tensors[output.id] = reparallelize(output, ({ id, parallelType }) =>
        id === consumer.id ? "Stream" : parallelType,
      );
      return;
    }
  }
}

/** The same for partial results that a reduction adds. */
function loopOverSum(edit: TensorEdit, op: ReductionOp, made: ReadonlyMap<TensorId, Op>): void {
  const { tensors } = edit;
  const output = at(tensors, op.output);
  const [number, ...others] = op.axes;
  if (number === undefined || others.length > 0 || streamAxis(output) !== null || !isResharding(op, tensors)) return;
  const devices = at(withoutReductions(at(tensors, at(op.inputs, 0)).domain.logical), number);
  const reduced = axisMap(op, tensors).find(({ producer }) => producer.id === devices.id)?.consumer;
  if (reduced === undefined || !loopOverParts(edit, op, devices, made)) return;
  edit.tensors[output.id] = reparallelize(output, ({ id, parallelType }) =>
    id === reduced.id ? "Stream" : parallelType,
  );
}

/** Cuts the partial results that `op` moves as its output is cut over the devices. False if they are no such. */
function loopOverParts(
  edit: TensorEdit,
  op: ReductionOp | SetOp,
  devices: IterDomain,
  made: ReadonlyMap<TensorId, Op>,
): boolean {
  const { tensors } = edit;
  const found = scatteredParts(op, devices, made, tensors);
  if (found === null) return false;
  const chunks = chunksOf(at(tensors, op.output), found.shard);
  for (const [id, axis] of found.makers) cutLike(edit, at(tensors, id), axis, chunks);
  return true;
}

function hasStream(op: Op, tensors: readonly Tensor[]): boolean {
  return [...op.inputs, op.output].some((id) => streamAxis(at(tensors, id)) !== null);
}

/** The cut over devices as a cut in chunks. */
function chunksOf({ domain }: Tensor, { axis }: AxisShard): SplitModel {
  const types = axisParts(domain, axis).map(({ parallelType }): ParallelType =>
    isDID(parallelType) ? "Stream" : parallelType,
  );
  return { domain, axis, types };
}

function cutLike(edit: TensorEdit, tensor: Tensor, cut: IterDomain, model: SplitModel): void {
  redomain(
    edit,
    tensor,
    tensor.domain.logical.map((axis) => ({ axis, model: axis.id === cut.id ? model : modelOf(tensor, axis) })),
  );
}
