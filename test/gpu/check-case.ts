/** Runs a Fusion or host programs on a back end and compares with what is expected, each rank its own shards. */
import type { ExecutorOptions } from "../../src/executor/executor-options.ts";
import { MultiDeviceExecutor } from "../../src/executor/multi-device-executor.ts";
import type { ProgramSource } from "../../src/compile/lower-all.ts";
import { shardOf, unpackShard } from "../../src/executor/shard.ts";
import { isSharded } from "../../src/executor/tensor-arguments.ts";
import { emptyTensor, type Tensor, tensorBytes } from "../../src/numerics/tensor/host-tensor.ts";
import { compare } from "../../src/oracle/value.ts";
import { at } from "../../src/support/invariant.ts";
import type { Expectation } from "./expectation.ts";

export interface CheckOptions extends ExecutorOptions {
  readonly rank: number;
  /** Runs per set of inputs: from the second on a graph may be replayed. */
  readonly repeat: number;
  /** Whether all runs on the same inputs must have equal bits. */
  readonly sameBits?: boolean;
}

/**
 * One line per output that differs; empty if all is well. All runs are made whatever they give, so that ranks stay in
 * step.
 */
export async function checkCase(
  source: ProgramSource,
  expectations: readonly Expectation[],
  { rank, repeat, sameBits = false, ...options }: CheckOptions,
): Promise<readonly string[]> {
  const problems: string[] = [];
  const executor = await MultiDeviceExecutor.create(source, { ...options, localRanks: [rank] });
  try {
    const { tensors, outputs: ids } = executor.hostProgram(rank);
    for (const { mode, inputs, outputs, bounds } of expectations) {
      const first: Uint8Array[] = [];
      for (let run = 0; run < repeat; run++) {
        const results = await executor.run(inputs, { gather: false });
        ids.forEach((id, position) => {
          const result = at(results, position);
          const shard = isSharded(result) ? (result[rank] ?? null) : result;
          if (shard === null) return;
          const bytes = tensorBytes(shard);
          first[position] ??= bytes.slice();
          if (sameBits && Buffer.compare(bytes, first[position]) !== 0) {
            problems.push(`${mode}, run ${run}, output ${position}: other bits than in run 0`);
          }
          const tensor = at(tensors, id);
          const whole = at(outputs, position);
          const expected = rowMajorShard(tensor, whole, rank, shard.shape);
          if (Buffer.compare(bytes, tensorBytes(expected)) === 0) return;
          const allowed = boundsOf(tensor, whole, bounds[position] ?? null, rank, shard.shape);
          const problem = differenceOf(shard, expected, allowed);
          if (problem !== null) problems.push(`${mode}, run ${run}, output ${position} (${whole.dtype}): ${problem}`);
        });
      }
    }
  } finally {
    await executor.close();
  }
  return problems;
}

function differenceOf(actual: Tensor, expected: Tensor, bounds: Float64Array): string | null {
  const { firstBad, maxRatio } = compare(actual, expected, bounds);
  if (firstBad === null) return null;
  const { index, actual: found, expected: wanted, bound } = firstBad;
  return `element ${index} of ${bounds.length} is ${String(found)}, not ${String(wanted)} within ${bound.toPrecision(3)} (worst ${maxRatio.toPrecision(3)} bounds)`;
}

type IrTensor = Parameters<typeof shardOf>[0];

/** The part of a whole tensor that a rank holds, in row-major order however the rank's memory is laid out. */
function rowMajorShard(tensor: IrTensor, whole: Tensor, rank: number, shape: readonly number[]): Tensor {
  const shard = emptyTensor(whole.dtype, shape);
  unpackShard(tensor, whole.shape, shardOf(tensor, whole.shape, tensorBytes(whole), rank), shard, rank);
  return shard;
}

/** The bounds of a rank's shard, cut as the tensor is; zeros for null. */
function boundsOf(
  tensor: IrTensor,
  { shape: whole, data }: Tensor,
  bounds: Float64Array | null,
  rank: number,
  shape: readonly number[],
): Float64Array {
  const all: Tensor = { dtype: "double", shape: whole, data: bounds ?? new Float64Array(data.length) };
  const bytes = tensorBytes(rowMajorShard({ ...tensor, dtype: "double" }, all, rank, shape));
  return new Float64Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 8);
}
