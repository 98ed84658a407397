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
import { isWhole, type Shard, shardsOf, keepsOneRun, typeOfWhole } from "../../ir/shards.ts";
import { isDID, type IterDomain, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import { readersOf, type FusionData } from "../../ir/fusion-data.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { Op, ReductionOp, SetOp } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import {
  redomain,
  editFusion,
  reparallelize,
  type TensorEdit,
  addShares,
  type FusionEdit,
} from "../edit/tensor-edit.ts";
import type { LoweringOptions } from "../options.ts";
import type { Pass } from "../pass.ts";
import { exchangesInLoops } from "../routes/move.ts";
import { isResharding, reshardedOperands, addCopy, sameMesh } from "../routes/layouts.ts";
import { streamAxis, streamPart } from "../../ir/stream.ts";
import { constant } from "../../ir/scalar/scalar.ts";
import { accumulatorOf } from "../../numerics/dtype.ts";

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
  if (scattered !== undefined && !(exchangesInLoops(options) && isSharedInRuns(gathered, scattered))) return;
  let isRead = false;
  for (const reader of readers) {
    if (hasStream(reader, tensors) || isResharding(reader, tensors)) continue;
    const pair = axisMap(reader, tensors).find((each) => each.producer.id === whole.id && !each.broadcast);
    if (pair === undefined || pair.consumer.iterType === "reduction") continue;
    if (!canMakeInChunks(reader, pair.consumer, isWhole(shard), tensors)) continue;
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

/** Sums of more shares are one reduction, a kernel of its own. */
const mostSummands = 8;

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

// Whether there are device loops, and the partial results of which each device keeps the sum of some.

/**
 * Whether communication becomes loops over the devices. UCC has no sends and receives, and nvFuser no loops over parts of
 * an axis.
 */
function hasDeviceLoops({ deviceLoops, backend, p2p, nvfuserLimits }: LoweringOptions): boolean {
  return deviceLoops && !nvfuserLimits && (backend !== "ucc" || p2p === "broadcast");
}

/** Partial results of which each device keeps the sum of some. */
interface ScatteredParts {
  /** How the devices share the result of the op that moves them. */
  readonly shard: Shard;
  /** How they share the axis that each device then has whole, if each had a run of it; null for one index. */
  readonly sharded: Shard | null;
  /** The partial results with the axis to cut likewise, and what is added to make them. */
  readonly makers: readonly TensorAxis[];
}

type TensorAxis = readonly [TensorId, IterDomain];

/**
 * What `op` moves, if these are a contraction's results, or sums of such, that nothing else reads: each device has one
 * index along `devices`, or one run if it is a Set, and keeps one run of another axis. Null for others.
 */
function scatteredParts(
  op: ReductionOp | SetOp,
  devices: IterDomain,
  made: ReadonlyMap<TensorId, Op>,
  tensors: readonly Tensor[],
): ScatteredParts | null {
  const [parts, output] = [at(tensors, at(op.inputs, 0)), at(tensors, op.output)];
  const sharded = op.kind === "Set" ? runOf(parts, devices) : null;
  const type = sharded?.type ?? typeOfWhole(parts, devices);
  const shard = shardsOf(output).find((each) => each.type === type);
  const [change, ...others] = reshardedOperands(op, tensors);
  if (change === undefined || others.length > 0 || change.types.some((each) => each !== type)) return null;
  if (shard === undefined || !sameMesh(parts.mesh, output.mesh) || !isSharedInRuns(output, shard)) return null;
  const scattered = axisMap(op, tensors).find(({ consumer }) => consumer.id === shard.axis.id)?.producer;
  if (scattered === undefined || scattered.id === devices.id) return null;
  const makers = makersOf(parts.id, scattered, isWhole(shard), made, tensors);
  return makers === null ? null : { shard, sharded, makers };
}

function runOf(tensor: Tensor, { id }: IterDomain): Shard | null {
  const own = shardsOf(tensor).filter(({ axis }) => axis.id === id);
  return own.find((shard) => !isWhole(shard) && isSharedInRuns(tensor, shard)) ?? null;
}

/**
 * Whether the op is a contraction that can compute its result by chunks of an axis. `isWhole`: an index is cut off the
 * axis, which a matmul cannot do to the rows or columns of a batch. Rows of a grouped matmul belong to groups.
 */
function canMakeInChunks(op: Op, axis: IterDomain, isWhole: boolean, tensors: readonly Tensor[]): boolean {
  if (op.kind !== "GroupedMatmul") return op.kind === "Linear" || (op.kind === "Matmul" && !isWhole);
  const leading = withoutReductions(at(tensors, at(op.inputs, 0)).domain.logical).slice(0, -2);
  return axisMap(op, tensors).some(
    ({ operand, producer, consumer }) =>
      operand === 0 && consumer.id === axis.id && leading.some(({ id }) => id === producer.id),
  );
}

function makersOf(
  id: TensorId,
  axis: IterDomain,
  isWhole: boolean,
  made: ReadonlyMap<TensorId, Op>,
  tensors: readonly Tensor[],
): readonly TensorAxis[] | null {
  const op = made.get(id);
  const tensor = at(tensors, id);
  const stream = streamPart(tensor);
  // A loop that reads what devices exchange may make it so already.
  const isMadeSo = isWhole && stream?.axis.id === axis.id && stream.chunks === null;
  if (op === undefined || (streamAxis(tensor) !== null && !isMadeSo)) return null;
  if (shardsOf(tensor).some((each) => each.axis.id === axis.id)) return null;
  if (canMakeInChunks(op, axis, isWhole, tensors)) return [[id, axis]];
  if ((op.kind !== "Binary" && op.kind !== "Permute") || isResharding(op, tensors)) return null;
  const pairs = axisMap(op, tensors);
  const below = op.inputs.map((input, operand) => {
    const own = pairs.find((pair) => pair.operand === operand && pair.consumer.id === axis.id && !pair.broadcast);
    return own === undefined ? null : makersOf(input, own.producer, isWhole, made, tensors);
  });
  return below.includes(null) ? null : [[id, axis], ...below.flatMap((each) => each ?? [])];
}

/** The ops whose result one other op reads, and nothing else, by that result. */
function readOnce({ ops, outputs }: FusionData): ReadonlyMap<TensorId, Op> {
  const reads = new Map<TensorId, number>(outputs.map((id) => [id, 2]));
  for (const { inputs } of ops) for (const id of inputs) reads.set(id, (reads.get(id) ?? 0) + 1);
  return new Map(ops.flatMap((op) => (reads.get(op.output) === 1 ? [[op.output, op] as const] : [])));
}

/** Whether each of several devices holds one run of the axis, or one index, and nothing cuts the axis otherwise. */
function isSharedInRuns({ mesh }: Tensor, shard: Shard): boolean {
  const devices = mesh?.size(shard.type) ?? 1;
  return devices > 1 && keepsOneRun(shard, devices);
}
