/** A Program that a back end has prepared for one set of sizes: the caller's tensors go into its buffers as shards, and come out of them. */
import type { Prepared } from "../backends/backend.ts";
import type { PlacedBuffer } from "../commands/buffer.ts";
import type { Program } from "../commands/program.ts";
import type { Tensor as IrTensor } from "../ir/domain.ts";
import { shapeOf, type Sizes } from "../ir/sizes.ts";
import { emptyTensor, type Tensor, tensorBytes } from "../numerics/tensor/host-tensor.ts";
import { at, invariant } from "../support/invariant.ts";
import { holders, packShard, shardOf, shardShape, unpackShard, unshardInto } from "./shard.ts";
import {
  isSharded,
  requireCount,
  requireShardShapes,
  type Shards,
  type TensorArgument,
  wholeShape,
} from "./tensor-arguments.ts";

export interface PreparedEntry {
  readonly program: Program;
  readonly prepared: Prepared;
  readonly inputs: readonly BoundTensor[];
  readonly outputs: readonly BoundTensor[];
  readonly devices: number;
}

/** An input or output, by its position in the program. */
export interface BoundTensor {
  readonly tensor: IrTensor;
  /** Of the whole tensor. */
  readonly shape: readonly number[];
  /** Of the ranks that this process holds, where they have a part of the tensor. */
  readonly buffers: readonly PlacedBuffer[];
}

/** Tensors in the order of their positions. `localRanks`: the ranks that this process holds; all if not given. */
export function bindTensors(
  program: Program,
  role: "input" | "output",
  tensors: readonly IrTensor[],
  sizes: Sizes,
  localRanks?: readonly number[],
): readonly BoundTensor[] {
  const byPosition: PlacedBuffer[][] = tensors.map(() => []);
  for (const buffer of program.buffers) {
    if (buffer.role !== role || buffer.position === null || localRanks?.includes(buffer.rank) === false) continue;
    at(byPosition, buffer.position).push(buffer);
  }
  return tensors.map((tensor, position) => ({
    tensor,
    shape: shapeOf(tensor, sizes),
    buffers: at(byPosition, position),
  }));
}

/** Puts the inputs of this process's ranks into the buffers of the Program. */
export function writeInputs(entry: PreparedEntry, inputs: readonly TensorArgument[]): void {
  inputs.forEach((argument, position) => {
    const { tensor, shape, buffers } = at(entry.inputs, position);
    for (const { id, rank } of buffers) {
      const bytes = isSharded(argument)
        ? packShard(tensor, shape, shardFor(argument, rank))
        : shardOf(tensor, shape, tensorBytes(argument), rank);
      entry.prepared.write(id, bytes);
    }
  });
}

/** Throws `input-count`, `input-shape` and `device-count` for tensors that cannot take the results. */
export function requireOutputs({ outputs, devices }: PreparedEntry, given: readonly TensorArgument[]): void {
  requireCount(
    "output",
    outputs.map(({ tensor }) => tensor),
    given,
  );
  outputs.forEach(({ tensor, shape }, i) => {
    wholeShape("output", i, tensor, at(given, i), devices);
    requireShardShapes("output", i, tensor, shape, at(given, i));
  });
}

/** The results, in what the caller has given or else in new tensors: whole ones if they are to be gathered, or one shard per rank. */
export function readOutputs(
  entry: PreparedEntry,
  given: readonly TensorArgument[] | undefined,
  gather: boolean,
): TensorArgument[] {
  return entry.outputs.map((output, position) => {
    const into = given?.[position];
    if (into === undefined) return gather ? readWhole(entry, output, null) : readShards(entry, output, null);
    return isSharded(into) ? readShards(entry, output, into) : readWhole(entry, output, into);
  });
}

/** null for ranks that this process does not hold, or that have no part of the tensor. */
function readShards(
  { prepared, devices }: PreparedEntry,
  { tensor, shape, buffers }: BoundTensor,
  into: Shards | null,
): Shards {
  const local = shardShape(tensor, shape);
  const shards: (Tensor | null)[] = Array.from({ length: devices }, () => null);
  for (const { id, rank } of buffers) {
    const shard = into?.[rank] ?? emptyTensor(tensor.dtype, local);
    unpackShard(tensor, shape, prepared.read(id), shard);
    shards[rank] = shard;
  }
  return shards;
}

function readWhole({ prepared }: PreparedEntry, { tensor, shape, buffers }: BoundTensor, into: Tensor | null): Tensor {
  const whole = into ?? emptyTensor(tensor.dtype, shape);
  const ranks = holders(tensor);
  for (const { id, rank } of buffers) {
    if (ranks.includes(rank)) unshardInto(tensor, shape, prepared.read(id), rank, tensorBytes(whole));
  }
  return whole;
}

/** That it is there was checked: buffers exist only on the tensor's devices. */
function shardFor(shards: Shards, rank: number): Tensor {
  const shard = shards[rank] ?? null;
  invariant(shard !== null, "every device of the mesh has a shard", { rank });
  return shard;
}
