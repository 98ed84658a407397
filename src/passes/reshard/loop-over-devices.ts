/**
 * With the option `deviceLoops`, puts the communication beside a contraction in a loop over the devices, as if the
 * program were annotated. The shards of a gathered operand become the chunks of the result, and the shards of a sum the
 * chunks of the partial results:
 *
 *   T2[M, N] = linear(T0[DIDx D, M/D, K], T1)             ->   T2[Stream D, M/D, N]
 *
 *   T3[M, N, DIDx] = linear(T0, T1)                       ->   T3[Stream D, M/D, N, DIDx]
 *   T2[DIDx D, M/D, N, r] = reduction(T3, {2})            ->   T2[DIDx D, M/D, N, rStream]
 *
 * The first is a gather: a device multiplies its own shard while the others arrive. The second is a reduce-scatter: it
 * sends the partial result of a peer's shard while it makes the next one. Tensors that have Stream stay as they are.
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
import type { FusionData } from "../../ir/fusion-data.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { Op, ReductionOp, SetOp } from "../../ir/ops/op.ts";
import { constant } from "../../ir/scalar/scalar.ts";
import { addCopy } from "./placement.ts";
import { accumulatorOf } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import {
  addTensor,
  copyAxes,
  editFusion,
  modelOf,
  redomain,
  reparallelize,
  splitLike,
  type SplitModel,
  type TensorEdit,
} from "../edit/tensor-edit.ts";
import type { Pass } from "../pass.ts";
import { isResharding, reshardedOperands, streamAxis } from "./sharding.ts";

/** Sums of more shares are one reduction, a kernel of its own. */
const mostSummands = 8;

export const loopOverDevices: Pass<"checked", "checked"> = {
  name: "loop-over-devices",
  from: "checked",
  to: "checked",
  run: (fusion, { options: { deviceLoops, overlap, backend, p2p } }) => {
    // UCC has no sends and receives.
    if (!deviceLoops || !overlap || (backend === "ucc" && p2p !== "broadcast")) return fusion;
    const edit = editFusion(fusion);
    const once = readOnce(fusion);
    for (const op of fusion.ops) {
      if (op.kind === "Linear" || op.kind === "Matmul") loopOverShards(edit, op);
      else if (op.kind === "Set") loopOverReaders(edit, op, fusion.ops);
      edit.ops.push(...(op.kind === "Reduction" ? loopOverSums(edit, op, once) : [op]));
    }
    const isSame =
      edit.tensors.length === fusion.tensors.length &&
      edit.tensors.every((tensor, id) => tensor === fusion.tensors[id]);
    return isSame ? fusion : { ...fusion, ...edit };
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
  if (shard === undefined || further.length > 0 || !isOutermost(producer, shard)) return;
  const pair = axisMap(op, tensors).find((each) => each.operand === operand && each.producer.id === shard.axis.id);
  if (pair === undefined || pair.broadcast || pair.consumer.iterType === "reduction") return;
  // A matmul reads a slice of a batch, not of the rows or columns of a batch.
  if (isWholeAxis(shard) && op.kind === "Matmul") return;
  cutLike(edit, output, pair.consumer, chunksOf(producer, shard));
}

/** Chunks of a gather, and of the results of the contractions that read it and keep the gathered axis. */
function loopOverReaders(edit: TensorEdit, op: SetOp, ops: readonly Op[]): void {
  const { tensors } = edit;
  const gathered = at(tensors, op.output);
  const [change] = reshardedOperands(op, tensors);
  if (change === undefined || change.meshDiffers || hasStream(op, tensors)) return;
  const { producer, types } = change;
  const [type, ...further] = types;
  const shard = axisShards(producer).find((each) => each.type === type);
  if (shard === undefined || further.length > 0 || !isOutermost(producer, shard)) return;
  const whole = axisMap(op, tensors).find((each) => each.producer.id === shard.axis.id)?.consumer;
  if (whole === undefined || axisShards(gathered).some(({ axis }) => axis.id === whole.id)) return;
  let isRead = false;
  for (const reader of ops) {
    if (reader.kind !== "Linear" && (reader.kind !== "Matmul" || isWholeAxis(shard))) continue;
    if (!reader.inputs.includes(op.output) || hasStream(reader, tensors) || isResharding(reader, tensors)) continue;
    const pair = axisMap(reader, tensors).find((each) => each.producer.id === whole.id && !each.broadcast);
    if (pair === undefined || pair.consumer.iterType === "reduction") continue;
    cutLike(edit, at(tensors, reader.output), pair.consumer, chunksOf(producer, shard));
    isRead = true;
  }
  if (isRead) cutLike(edit, gathered, whole, chunksOf(producer, shard));
}

/** Chunks of the partial results for the shards of their sum over the devices. */
function loopOverSums(edit: TensorEdit, op: ReductionOp, made: ReadonlyMap<TensorId, Op>): readonly Op[] {
  const { tensors } = edit;
  const output = at(tensors, op.output);
  const [number, ...others] = op.axes;
  if (number === undefined || others.length > 0 || streamAxis(output) !== null || !isResharding(op, tensors))
    return [op];
  const parts = at(tensors, at(op.inputs, 0));
  const devices = at(withoutReductions(parts.domain.logical), number);
  const type = axisShards(parts).find((each) => each.axis.id === devices.id && isWholeAxis(each))?.type;
  const shard = axisShards(output).find((each) => each.type === type);
  if (shard === undefined || !isOutermost(output, shard)) return [op];
  const pairs = axisMap(op, tensors);
  const scattered = pairs.find(({ consumer }) => consumer.id === shard.axis.id)?.producer;
  const reduced = pairs.find(({ producer }) => producer.id === devices.id)?.consumer;
  if (scattered === undefined || reduced === undefined) return [op];
  const cut = makersOf(parts.id, scattered, made, tensors);
  if (cut === null) return [op];
  for (const [id, axis] of cut) cutLike(edit, at(tensors, id), axis, chunksOf(output, shard));
  const count = parts.mesh?.size(shard.type) ?? 0;
  if (op.op !== "sum" || count > mostSummands) {
    edit.tensors[output.id] = reparallelize(output, ({ id, parallelType }) =>
      id === reduced.id ? "Stream" : parallelType,
    );
    return [op];
  }
  const shares = sharesOf(edit, output, reduced);
  const axes = withoutReductions(output.domain.logical);
  redomain(
    edit,
    output,
    axes.map((axis) => ({ axis, model: modelOf(output, axis) })),
  );
  return [{ kind: "Set", inputs: op.inputs, output: shares.id }, ...sumOf(edit, shares.id, number, count, output.id)];
}

/**
 * The tensors to cut for chunks of partial results along `axis`: of a contraction, or of a sum of such, each read by
 * nothing else. Null for others.
 */
function makersOf(
  id: TensorId,
  axis: IterDomain,
  made: ReadonlyMap<TensorId, Op>,
  tensors: readonly Tensor[],
): readonly (readonly [TensorId, IterDomain])[] | null {
  const op = made.get(id);
  const tensor = at(tensors, id);
  if (op === undefined || streamAxis(tensor) !== null || axisShards(tensor).some((each) => each.axis.id === axis.id))
    return null;
  if (op.kind === "Linear" || op.kind === "Matmul") return [[id, axis]];
  if (op.kind !== "Binary" || isResharding(op, tensors)) return null;
  const pairs = axisMap(op, tensors);
  const below = op.inputs.map((input, operand) => {
    const own = pairs.find((pair) => pair.operand === operand && pair.consumer.id === axis.id && !pair.broadcast);
    return own === undefined ? null : makersOf(input, own.producer, made, tensors);
  });
  return below.includes(null) ? null : [[id, axis], ...below.flatMap((each) => each ?? [])];
}

/** The ops whose result one other op reads, and nothing else, by that result. */
function readOnce({ ops, outputs }: FusionData): ReadonlyMap<TensorId, Op> {
  const reads = new Map<TensorId, number>(outputs.map((id) => [id, 2]));
  for (const { inputs } of ops) for (const id of inputs) reads.set(id, (reads.get(id) ?? 0) + 1);
  return new Map(ops.flatMap((op) => (reads.get(op.output) === 1 ? [[op.output, op] as const] : [])));
}

function hasStream(op: Op, tensors: readonly Tensor[]): boolean {
  return [...op.inputs, op.output].some((id) => streamAxis(at(tensors, id)) !== null);
}

/** Whether each device holds one run of the axis, or one index. */
function isOutermost({ domain }: Tensor, { axis, part }: AxisShard): boolean {
  const parts = axisParts(domain, axis);
  return parts[0]?.id === part && parts.filter(({ parallelType }) => isDID(parallelType)).length === 1;
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

/**
 * Adds the indices of an axis in order, with the bits of a reduction. As binary ops, the sums are computed in the kernels
 * that read them.
 */
function sumOf(edit: TensorEdit, source: TensorId, axis: number, count: number, output: TensorId): readonly Op[] {
  const ops: Op[] = [];
  const like = at(edit.tensors, output);
  const wide = accumulatorOf[like.dtype];
  // The sum of two is rounded once in any case.
  const dtype = count > 2 ? wide : like.dtype;
  const added = (as = dtype): TensorId => {
    const { id } = addCopy(edit, like);
    edit.tensors[id] = { ...at(edit.tensors, id), dtype: as };
    return id;
  };
  let sum: TensorId | null = null;
  for (let index = 0; index < count; index++) {
    const share = added(like.dtype);
    ops.push({ kind: "Select", axis, index: constant(index), inputs: [source], output: share });
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

/** The devices' shares of the part of `output` that a device keeps, each in one piece of memory. */
function sharesOf(edit: TensorEdit, output: Tensor, devices: IterDomain): Tensor {
  const { logical } = output.domain;
  const axes = copyAxes(edit, logical, ({ parallelType }) => parallelType);
  const domain = splitLike(
    edit,
    axes.map((axis, i) => {
      const own = at(logical, i);
      return own.id === devices.id
        ? { axis: { ...axis, iterType: "iteration", parallelType: "Stream" }, model: null }
        : { axis, model: modelOf(output, own) };
    }),
  );
  const position = logical.findIndex(({ id }) => id === devices.id);
  const first = at(domain.logical, position);
  const allocation = position === 0 ? null : [first, ...domain.logical.filter((axis) => axis !== first)];
  return addTensor(edit, output, { ...domain, allocation }, output.mesh, "global", "parts");
}
