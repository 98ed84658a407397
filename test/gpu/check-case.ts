/**
 * Runs a Fusion on a back end and compares with the oracle, each rank its own shards: within the bounds for random floats, and over whole numbers,
 * whose sums are exact in any order, bit for bit.
 */
import type { ExecutorOptions } from "../../src/executor/executor-options.ts";
import { MultiDeviceExecutor } from "../../src/executor/multi-device-executor.ts";
import { shardOf } from "../../src/executor/shard.ts";
import { isSharded } from "../../src/executor/tensor-arguments.ts";
import type { Fusion } from "../../src/ir/api/fusion.ts";
import { shapeOf } from "../../src/ir/sizes.ts";
import { emptyTensor, type Tensor, tensorBytes } from "../../src/numerics/host-tensor.ts";
import { compare } from "../../src/oracle/compare.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";

export interface CheckOptions extends ExecutorOptions {
  readonly rank: number;
  /** Runs per set of inputs: from the second on a graph may be replayed. */
  readonly repeat: number;
}

/** One line per output that differs; empty if all is well. */
export async function checkCase(
  fusion: Fusion,
  { rank, repeat, ...options }: CheckOptions,
): Promise<readonly string[]> {
  const data = fusion.data();
  const shapes = data.inputs.map((id) => {
    const { dtype } = at(data.tensors, id);
    return { dtype, shape: shapeOf(at(data.tensors, id), new Map()) };
  });
  const problems: string[] = [];
  const executor = await MultiDeviceExecutor.create(fusion, { ...options, localRanks: [rank] });
  try {
    for (const [i, mode] of (["uniform", "small-integers", "uniform"] as const).entries()) {
      const inputs = randomInputs(shapes, createRandom(i + 1), mode);
      const { outputs, bounds } = evaluateFusion(data, inputs);
      for (let run = 0; run < repeat; run++) {
        const results = await executor.run(inputs, { gather: false });
        data.outputs.forEach((id, position) => {
          const result = at(results, position);
          const shard = isSharded(result) ? (result[rank] ?? null) : result;
          if (shard === null) return;
          const tensor = at(data.tensors, id);
          const whole = at(outputs, position);
          const expected = emptyTensor(whole.dtype, shard.shape);
          tensorBytes(expected).set(shardOf(tensor, whole.shape, tensorBytes(whole), rank));
          const problem = differenceOf(shard, expected, boundsOf(tensor, whole, at(bounds, position), rank));
          if (problem !== null) problems.push(`${mode}, run ${run}, output ${position} (${whole.dtype}): ${problem}`);
        });
        if (problems.length > 0) return problems;
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

/** The bounds of a rank's shard, cut as the tensor is. */
function boundsOf(tensor: IrTensor, { shape }: Tensor, bounds: Float64Array, rank: number): Float64Array {
  const bytes = shardOf(
    { ...tensor, dtype: "double" },
    shape,
    new Uint8Array(bounds.buffer, bounds.byteOffset, bounds.byteLength),
    rank,
  );
  return new Float64Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 8);
}
