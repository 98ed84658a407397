/**
 * What the passes of device loops have in common: whether there are any, and the partial results of which each device
 * keeps the sum of some.
 */
import { keepsOneRun, isWhole, type Shard, shardsOf, typeOfWhole } from "../../ir/shards.ts";
import { type IterDomain, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { Op, ReductionOp, SetOp } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import type { LoweringOptions } from "../options.ts";
import { isResharding, reshardedOperands, sameMesh } from "../routes/layouts.ts";
import { streamAxis, streamPart } from "../../ir/stream.ts";

/**
 * Whether communication becomes loops over the devices. UCC has no sends and receives, and nvFuser no loops over parts of
 * an axis.
 */
export function hasDeviceLoops({ deviceLoops, backend, p2p, nvfuserLimits }: LoweringOptions): boolean {
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
export function scatteredParts(
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
export function canMakeInChunks(op: Op, axis: IterDomain, isWhole: boolean, tensors: readonly Tensor[]): boolean {
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
export function readOnce({ ops, outputs }: FusionData): ReadonlyMap<TensorId, Op> {
  const reads = new Map<TensorId, number>(outputs.map((id) => [id, 2]));
  for (const { inputs } of ops) for (const id of inputs) reads.set(id, (reads.get(id) ?? 0) + 1);
  return new Map(ops.flatMap((op) => (reads.get(op.output) === 1 ? [[op.output, op] as const] : [])));
}

/** Whether each of several devices holds one run of the axis, or one index, and nothing cuts the axis otherwise. */
export function isSharedInRuns({ mesh }: Tensor, shard: Shard): boolean {
  const devices = mesh?.size(shard.type) ?? 1;
  return devices > 1 && keepsOneRun(shard, devices);
}
