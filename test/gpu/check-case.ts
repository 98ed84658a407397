/** Runs a Fusion or host programs on a back end and compares with what is expected, each rank its own shards. */
import type { ExecutorOptions } from "../../src/executor/executor-options.ts";
import { MultiDeviceExecutor } from "../../src/executor/multi-device-executor.ts";
import type { ProgramSource } from "../../src/executor/program-source.ts";
import { shardOf } from "../../src/executor/shard.ts";
import { isSharded } from "../../src/executor/tensor-arguments.ts";
import { emptyTensor, type Tensor, tensorBytes } from "../../src/numerics/host-tensor.ts";
import { compare } from "../../src/oracle/compare.ts";
import { at } from "../../src/support/invariant.ts";
import type { Expectation } from "./expectation.ts";

export interface CheckOptions extends ExecutorOptions {
  readonly rank: number;
  /** Runs per set of inputs: from the second on a graph may be replayed. */
  readonly repeat: number;
}

/** One line per output that differs; empty if all is well. All runs are made whatever they give, so that ranks stay in step. */
export async function checkCase(
  source: ProgramSource,
  expectations: readonly Expectation[],
  { rank, repeat, ...options }: CheckOptions,
): Promise<readonly string[]> {
  const problems: string[] = [];
  const executor = await MultiDeviceExecutor.create(source, { ...options, localRanks: [rank] });
  try {
    const { tensors, outputs: ids } = executor.hostProgram(rank);
    for (const { mode, inputs, outputs, bounds } of expectations) {
      for (let run = 0; run < repeat; run++) {
        const results = await executor.run(inputs, { gather: false });
        ids.forEach((id, position) => {
          const result = at(results, position);
          const shard = isSharded(result) ? (result[rank] ?? null) : result;
          if (shard === null) return;
          const tensor = at(tensors, id);
          const whole = at(outputs, position);
          const expected = emptyTensor(whole.dtype, shard.shape);
          tensorBytes(expected).set(shardOf(tensor, whole.shape, tensorBytes(whole), rank));
          if (Buffer.compare(tensorBytes(shard), tensorBytes(expected)) === 0) return;
          const allowed = boundsOf(tensor, whole, bounds[position] ?? null, rank);
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

/** The bounds of a rank's shard, cut as the tensor is; zeros for null. */
function boundsOf(tensor: IrTensor, { shape, data }: Tensor, bounds: Float64Array | null, rank: number): Float64Array {
  const { buffer, byteOffset, byteLength } = bounds ?? new Float64Array(data.length);
  const bytes = shardOf({ ...tensor, dtype: "double" }, shape, new Uint8Array(buffer, byteOffset, byteLength), rank);
  return new Float64Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 8);
}
