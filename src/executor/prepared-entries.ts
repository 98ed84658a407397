/**
 * The prepared Programs of an executor, one per set of sizes and scalars, within a budget of bytes. Programs that ran
 * longest ago are released first. In a world of processes every process releases the same ones at the same point,
 * because all make the same runs and count the same bytes.
 */
import type { Prepared } from "../backends/backend.ts";
import { type BufferId, type PlacedBuffer, positionIn } from "../commands/buffer.ts";
import { type Program, reservedBytes } from "../commands/program.ts";
import type { Tensor as IrTensor } from "../ir/domain.ts";
import { shapeOf, type Sizes } from "../ir/sizes.ts";
import { emptyTensor, type Tensor, tensorBytes } from "../numerics/tensor/host-tensor.ts";
import { fail } from "../diagnostics/diagnostic.ts";
import { at, invariant } from "../support/invariant.ts";
import { holders, packShardInto, shardInto, shardShape, unpackShard, unshardInto } from "./shard.ts";
import {
  isSharded,
  type InputArgument,
  requireCount,
  requireShardShapes,
  type Shards,
  type TensorArgument,
  wholeShape,
} from "./tensor-arguments.ts";

export interface ExecutorMemory {
  /** Bytes of the Programs that are prepared: buffers, and an estimate for command lists. */
  readonly bytes: number;
  /** The sets of sizes and scalars that are prepared. */
  readonly programs: number;
  /** How many Programs were released to stay within the budget. */
  readonly released: number;
  readonly budget: number;
}

export interface PreparedEntries {
  /** The entry of that key, which then counts as the last that ran. */
  readonly take: (key: string) => PreparedEntry | undefined;
  /** Releases entries until one of that many bytes fits, or none is left. */
  readonly makeRoom: (bytes: number) => void;
  readonly add: (key: string, entry: PreparedEntry, bytes: number) => void;
  readonly releaseAll: () => void;
  readonly memory: () => ExecutorMemory;
}

export function createPreparedEntries(budget: number): PreparedEntries {
  // In order of their last runs.
  const entries = new Map<string, { readonly entry: PreparedEntry; readonly bytes: number }>();
  let held = 0;
  let released = 0;
  const release = (key: string): void => {
    const known = entries.get(key);
    if (known === undefined) return;
    entries.delete(key);
    held -= known.bytes;
    known.entry.prepared.release();
  };
  return {
    take: (key) => {
      const known = entries.get(key);
      if (known === undefined) return undefined;
      entries.delete(key);
      entries.set(key, known);
      return known.entry;
    },
    makeRoom: (bytes) => {
      for (const key of entries.keys()) {
        if (held + bytes <= budget) return;
        release(key);
        released++;
      }
    },
    add: (key, entry, bytes) => {
      entries.set(key, { entry, bytes });
      held += bytes;
    },
    releaseAll: () => {
      for (const key of entries.keys()) release(key);
    },
    memory: () => ({ bytes: held, programs: entries.size, released, budget }),
  };
}

/** Memory of a command on the host: measured, 3 KB with two worker threads, each of which has a copy. */
const commandBytes = 4096;

/**
 * The memory that this process holds for a Program. If it holds some ranks only, each counts as the largest, so that
 * all processes come to the same number.
 */
export function preparedBytes({ ranks }: Program, localRanks: readonly number[] | undefined): number {
  const buffers = ranks.map(reservedBytes);
  const commands = ranks.reduce((sum, rank) => sum + rank.commands.length, 0);
  const held =
    localRanks === undefined
      ? buffers.reduce((sum, bytes) => sum + bytes, 0)
      : localRanks.length * Math.max(0, ...buffers);
  return held + commandBytes * commands;
}

// A Program that a back end has prepared for one set of sizes. The caller's tensors are sharded into its buffers and
// gathered from them.

export interface PreparedEntry {
  readonly program: Program;
  readonly prepared: Prepared;
  readonly inputs: readonly CallerTensor[];
  readonly outputs: readonly CallerTensor[];
  readonly devices: number;
  /** The positions of inputs that a run has given. */
  readonly given: Set<number>;
}

/** An input or output of the program. */
export interface CallerTensor {
  readonly tensor: IrTensor;
  /** The whole tensor's shape. */
  readonly shape: readonly number[];
  /** One buffer per rank that this process holds and that has a part of the tensor. */
  readonly buffers: readonly PlacedBuffer[];
}

/** Binds tensors in the order of their positions. `localRanks`: the ranks that this process holds; all if omitted. */
export function bindTensors(
  program: Program,
  role: "input" | "output",
  tensors: readonly IrTensor[],
  sizes: Sizes,
  localRanks?: readonly number[],
): readonly CallerTensor[] {
  const byPosition: PlacedBuffer[][] = tensors.map(() => []);
  for (const buffer of program.buffers) {
    const position = positionIn(buffer, role);
    if (position === null || localRanks?.includes(buffer.rank) === false) continue;
    at(byPosition, position).push(buffer);
  }
  return tensors.map((tensor, position) => ({
    tensor,
    shape: shapeOf(tensor, sizes),
    buffers: at(byPosition, position),
  }));
}

/**
 * Writes the inputs of this process's ranks into the Program's buffers. Throws `bad-argument` for null in place of an
 * input that no run has given.
 */
export function writeInputs(entry: PreparedEntry, inputs: readonly InputArgument[]): void {
  const missing = inputs.findIndex((argument, position) => argument === null && !entry.given.has(position));
  if (missing >= 0) noState(missing);
  inputs.forEach((argument, position) => {
    if (argument === null) return;
    entry.given.add(position);
    const { tensor, shape, buffers } = at(entry.inputs, position);
    for (const { id, rank, bytes } of buffers) {
      const own = entry.prepared.view(id);
      const local = own ?? new Uint8Array(bytes);
      if (isSharded(argument)) packShardInto(tensor, shape, shardFor(argument, rank), rank, local);
      else shardInto(tensor, shape, tensorBytes(argument), rank, local);
      if (own === null) entry.prepared.write(id, local);
    }
  });
}

function noState(position: number): never {
  return fail({
    code: "bad-argument",
    message: `input ${position} is null, and no run with these sizes has given it`,
    place: { kind: "call", text: "run(inputs)" },
    found: "null",
    expected: "a tensor in the first run with these sizes, and after the executor released its Program",
    help: "pass the tensor once; later runs may pass null, and begin with what the last run left",
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

/**
 * The results, in the caller's tensors or else in new ones: whole if gathered, otherwise one shard per rank. Without a
 * tensor for it, an output in the buffer of an input that was null is null: it stays there.
 */
export function readOutputs(
  entry: PreparedEntry,
  inputs: readonly InputArgument[],
  given: readonly TensorArgument[] | undefined,
  gather: boolean,
): InputArgument[] {
  return entry.outputs.map((output, position) => {
    const into = given?.[position];
    if (
      into === undefined &&
      output.buffers.some(({ role, position: input }) => role === "input" && input !== null && inputs[input] === null)
    )
      return null;
    if (into === undefined) return gather ? readWhole(entry, output, null) : readShards(entry, output, null);
    return isSharded(into) ? readShards(entry, output, into) : readWhole(entry, output, into);
  });
}

/** null for ranks of other processes and for ranks without a part of the tensor. */
function readShards(
  { prepared, devices }: PreparedEntry,
  { tensor, shape, buffers }: CallerTensor,
  into: Shards | null,
): Shards {
  const shards: (Tensor | null)[] = Array.from({ length: devices }, () => null);
  for (const { id, rank } of buffers) {
    const shard = into?.[rank] ?? emptyTensor(tensor.dtype, shardShape(tensor, shape, rank));
    unpackShard(tensor, shape, contentOf(prepared, id), shard, rank);
    shards[rank] = shard;
  }
  return shards;
}

function readWhole({ prepared }: PreparedEntry, { tensor, shape, buffers }: CallerTensor, into: Tensor | null): Tensor {
  const whole = into ?? emptyTensor(tensor.dtype, shape);
  const ranks = holders(tensor);
  for (const { id, rank } of buffers) {
    if (ranks.includes(rank)) unshardInto(tensor, shape, contentOf(prepared, id), rank, tensorBytes(whole));
  }
  return whole;
}

/** Until the next run. */
function contentOf(prepared: Prepared, buffer: BufferId): Uint8Array {
  return prepared.view(buffer) ?? prepared.read(buffer);
}

/** Never fails: buffers exist only on the tensor's devices, whose shards were checked. */
function shardFor(shards: Shards, rank: number): Tensor {
  const shard = shards[rank] ?? null;
  invariant(shard !== null, "every device of the mesh has a shard", { rank });
  return shard;
}
