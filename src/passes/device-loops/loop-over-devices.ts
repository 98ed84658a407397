/**
 * With the option `deviceLoops`, puts the communication beside a contraction in a loop over the devices, as if the
 * program were annotated. The shards of a gathered operand become the chunks of the result, and the shards of a sum the
 * chunks of the partial results:
 *
 *   T3[M, K] = Set(T0[DIDx D, M/D, K]); T2[M, N] = linear(T3, T1)   ->   T3[Stream D, M/D, K], T2[Stream D, M/D, N]
 *
 *   T3[M, N, DIDx] = linear(T0, T1)                       ->   T3[Stream D, M/D, N, DIDx]
 *   T4[DIDx D, M/D, N, D] = Set(T3)                       ->   T4[DIDx D, M/D, N, Stream D]
 *
 * The first is a gather: a device multiplies its own shard while the others arrive. The second is a reduce-scatter
 * (exchange-sums): it sends the partial result of a peer's shard while it makes the next one. An exchange of all with all
 * before or after a contraction is cut alike: the tokens of experts. Tensors that have Stream stay as they are.
 */
import { type CutAxis, cutOf } from "../../ir/parts.ts";
import { isWhole, type Shard, shardsOf } from "../../ir/shards.ts";
import { isDID, type IterDomain, type Tensor, type TensorId } from "../../ir/domain.ts";
import { readersOf } from "../../ir/fusion-data.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { Op, ReductionOp, SetOp } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import { redomain } from "../edit/split-axes.ts";
import { editFusion, reparallelize, type TensorEdit } from "../edit/tensor-edit.ts";
import type { LoweringOptions } from "../options.ts";
import type { Pass } from "../pass.ts";
import { exchangesInLoops } from "../routes/move.ts";
import { isResharding, reshardedOperands } from "../routes/sharding.ts";
import { streamAxis } from "../../ir/stream.ts";
import { hasDeviceLoops, isSharedInRuns, readOnce, scatteredParts } from "./scattered-parts.ts";

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
      if (op.kind === "Set") loopOverReaders(edit, op, readers.get(op.output) ?? [], options);
      if (op.kind === "Set" || op.kind === "Reduction") loopOverParts(edit, op, once, options);
    }
    return edit.tensors.every((tensor, id) => tensor === fusion.tensors[id])
      ? fusion
      : { ...fusion, ...edit, ops: fusion.ops };
  },
};

/**
 * How a tensor is shared that a Set gathers along one type, or exchanges for runs of another axis. Null for Sets that
 * move more, and with Stream.
 */
function gatheredShard(op: SetOp, tensors: readonly Tensor[]): Shard | null {
  const [change] = reshardedOperands(op, tensors);
  if (change === undefined || change.meshDiffers || hasStream(op, tensors)) return null;
  const { producer, types } = change;
  const [type, ...further] = types;
  const shard = shardsOf(producer).find((each) => each.type === type);
  return shard === undefined || further.length > 0 || !isSharedInRuns(producer, shard) ? null : shard;
}

/** Chunks of a gather, and of the results of the contractions that read it and keep the gathered axis. */
function loopOverReaders(edit: TensorEdit, op: SetOp, readers: readonly Op[], options: LoweringOptions): void {
  const { tensors } = edit;
  const shard = gatheredShard(op, tensors);
  if (shard === null) return;
  const gathered = at(tensors, op.output);
  const whole = axisMap(op, tensors).find((each) => each.producer.id === shard.axis.id)?.consumer;
  const kept = shardsOf(gathered);
  const scattered = kept.find(({ type }) => type === shard.type);
  if (whole === undefined || kept.some(({ axis }) => axis.id === whole.id)) return;
  // Of whole axes it is the maker of the operand that takes turns.
  const isExchanged = exchangesInLoops(options) && !isWhole(shard);
  if (scattered !== undefined && !(isExchanged && isSharedInRuns(gathered, scattered))) return;
  let isRead = false;
  for (const reader of readers) {
    // A matmul reads a slice of a batch, not of the rows or columns of a batch.
    if (reader.kind !== "Linear" && (reader.kind !== "Matmul" || isWhole(shard))) continue;
    if (hasStream(reader, tensors) || isResharding(reader, tensors)) continue;
    const pair = axisMap(reader, tensors).find((each) => each.producer.id === whole.id && !each.broadcast);
    if (pair === undefined || pair.consumer.iterType === "reduction") continue;
    cutLike(edit, at(tensors, reader.output), pair.consumer, chunksOf(shard));
    isRead = true;
  }
  if (isRead) cutLike(edit, gathered, whole, chunksOf(shard));
}

/**
 * Chunks of results that the devices exchange, or that a reduction over the devices adds: cut as the output is cut over
 * the devices.
 */
function loopOverParts(
  edit: TensorEdit,
  op: ReductionOp | SetOp,
  made: ReadonlyMap<TensorId, Op>,
  options: LoweringOptions,
): void {
  const { tensors } = edit;
  const output = at(tensors, op.output);
  if (streamAxis(output) !== null || (op.kind === "Reduction" && op.axes.length > 1)) return;
  for (const { producer, consumer } of axisMap(op, tensors)) {
    if (op.kind === "Reduction" && consumer.iterType !== "reduction") continue;
    const found = scatteredParts(op, producer, made, tensors);
    if (found === null || (found.sharded !== null && !exchangesInLoops(options))) continue;
    const chunks = chunksOf(found.shard);
    for (const [id, axis] of found.makers) cutLike(edit, at(tensors, id), axis, chunks);
    if (found.sharded === null)
      edit.tensors[output.id] = reparallelize(output, ({ id, parallelType }) =>
        id === consumer.id ? "Stream" : parallelType,
      );
    else cutLike(edit, output, consumer, chunksOf(found.sharded));
    return;
  }
}

function hasStream(op: Op, tensors: readonly Tensor[]): boolean {
  return [...op.inputs, op.output].some((id) => streamAxis(at(tensors, id)) !== null);
}

/** The cut over devices as a cut in chunks. */
function chunksOf({ cut: { extent, parts } }: Shard): CutAxis {
  return { extent, parts: parts.map((part) => (isDID(part.type) ? { ...part, type: "Stream" } : part)) };
}

function cutLike(edit: TensorEdit, tensor: Tensor, cut: IterDomain, model: CutAxis): void {
  redomain(
    edit,
    tensor,
    tensor.domain.logical.map((axis) => ({ axis, model: axis.id === cut.id ? model : cutOf(tensor.domain, axis) })),
  );
}
