/**
 * Runs a large case on a back end and compares what this rank gets: all of it with the product by one GPU alone, and
 * sampled rows with the same in double. Signs have to agree in every bit; random numbers within the error of the
 * sampled rows.
 */
import type { ExecutorOptions } from "../../../src/executor/executor-options.ts";
import { MultiDeviceExecutor } from "../../../src/executor/multi-device-executor.ts";
import { shardShape } from "../../../src/executor/shard.ts";
import { isSharded } from "../../../src/executor/tensor-arguments.ts";
import type { Fusion } from "../../../src/ir/api/fusion.ts";
import { shapeOf } from "../../../src/ir/sizes.ts";
import { type Tensor, tensorBytes } from "../../../src/numerics/tensor/host-tensor.ts";
import { at, invariant } from "../../../src/support/invariant.ts";
import type { LargeCase, LargeSizes } from "./large-cases.ts";
import type { LargeInputs } from "./large-inputs.ts";
import { type LargeDType, type MatrixPart, type Range } from "./large-matrix.ts";
import { numbersOf } from "./numbers-of.ts";

export interface LargeCheck {
  readonly sizes: LargeSizes;
  readonly dtype: LargeDType;
  readonly rank: number;
  /** One run with each, in this order: from the second on a graph may be replayed. */
  readonly inputs: readonly LargeInputs[];
  readonly options: ExecutorOptions;
}

const sampledCount = 16;

/** One line per run that went wrong; every rank makes the same runs whatever it finds. */
export async function checkLarge(
  { build, parts, sharesK }: LargeCase,
  { sizes, dtype, rank, inputs, options }: LargeCheck,
): Promise<readonly string[]> {
  const { devices } = options;
  const fusion = build(devices, sizes, dtype);
  const held = parts(devices, sizes, rank);
  const executor = await MultiDeviceExecutor.create(fusion, { ...options, localRanks: [rank] });
  const shapes = inputShardShapes(fusion);
  const problems: string[] = [];
  try {
    for (const [run, given] of inputs.entries()) {
      const own = [given.part("a", held.a, at(shapes, 0)), given.part("b", held.b, at(shapes, 1))];
      // Only this rank's shard is written: it may stand for those of all.
      const shards = own.map((tensor) => Array.from({ length: devices }, () => tensor));
      const [result] = await executor.run(shards, { gather: false });
      const shard = result !== undefined && isSharded(result) ? (result[rank] ?? null) : null;
      invariant(shard !== null, "every rank has a part of the result", { rank });
      const problem = problemOf(shard, held.c, given, sharesK ? devices : 1, (rank + 0.5) / devices);
      if (problem !== null) problems.push(`run ${run} (${given.mode}): ${problem}`);
    }
  } finally {
    await executor.close();
  }
  return problems;
}

function inputShardShapes(fusion: Fusion): readonly (readonly number[])[] {
  const data = fusion.data();
  return data.inputs.map((id) => {
    const tensor = at(data.tensors, id);
    return shardShape(tensor, shapeOf(tensor, new Map()), 0);
  });
}

/** `phase`, in (0, 1): where between its neighbours a sampled row lies, so that ranks sample different ones. */
function problemOf(
  shard: Tensor,
  { rows }: MatrixPart,
  { mode, plain, sample, b }: LargeInputs,
  parts: number,
  phase: number,
): string | null {
  const heldRows = rows.reduce((sum, { count }) => sum + count, 0);
  const positions = Array.from({ length: sampledCount }, (_, i) => Math.floor(((i + phase) / sampledCount) * heldRows));
  const sampled = sample(
    positions.map((position) => rowAt(rows, position)),
    parts,
  );
  const n = b.columns;
  const { exact, bounds } = sampled;
  for (const [i, position] of positions.entries()) {
    const numbers = numbersOf(shard, position * n, n);
    for (let j = 0; j < n; j++) {
      const [found, wanted, bound] = [at(numbers, j), at(exact, i * n + j), at(bounds, i * n + j)];
      if (Math.abs(found - wanted) <= bound) continue;
      return `row ${at(sampled.rows, i)}, column ${j} is ${found}, not ${wanted} within ${bound.toPrecision(3)}`;
    }
  }
  const limit = mode === "signs" ? 0 : 2 * largest(bounds);
  return differenceFromPlain(shard, rows, plain, n, limit);
}

/** The whole part against the product by one GPU. */
function differenceFromPlain(
  shard: Tensor,
  rows: readonly Range[],
  plain: Tensor,
  n: number,
  limit: number,
): string | null {
  let position = 0;
  for (const { start, count } of rows) {
    for (let row = start; row < start + count; row++, position++) {
      if (sameBytes(shard, position * n, plain, row * n, n)) continue;
      const [found, wanted] = [numbersOf(shard, position * n, n), numbersOf(plain, row * n, n)];
      const column = found.findIndex((number, j) => !(Math.abs(number - at(wanted, j)) <= limit));
      if (column >= 0) {
        return `row ${row}, column ${column} is ${at(found, column)}, and ${at(wanted, column)} by one GPU alone; ${limit.toPrecision(3)} is allowed`;
      }
    }
  }
  return null;
}

function sameBytes(a: Tensor, aStart: number, b: Tensor, bStart: number, count: number): boolean {
  const width = a.data.BYTES_PER_ELEMENT;
  const [left, right] = [tensorBytes(a), tensorBytes(b)];
  const of = (bytes: Uint8Array, start: number): Uint8Array => bytes.subarray(start * width, (start + count) * width);
  return Buffer.compare(of(left, aStart), of(right, bStart)) === 0;
}

/** The row of the whole matrix that a rank holds at `position` of its own. */
function rowAt(rows: readonly Range[], position: number): number {
  let left = position;
  for (const { start, count } of rows) {
    if (left < count) return start + left;
    left -= count;
  }
  invariant(false, "a position inside the part", { position });
}

function largest(numbers: Float64Array): number {
  return numbers.reduce((most, each) => Math.max(most, each), 0);
}
