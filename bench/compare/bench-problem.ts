/** What one table of results is about: a GEMM with its communication, or a transformer block. */
import { dtypes } from "../../src/numerics/dtype.ts";
import { unreachable } from "../../src/support/invariant.ts";
import { blockFlops, type BlockProblem, blockReceived } from "./block/block-problem.ts";
import { primitives, type Problem } from "./primitives.ts";

export const benchPrimitives = [...primitives, "block"] as const;
export type BenchPrimitive = (typeof benchPrimitives)[number];

export type BenchProblem = Problem | BlockProblem;

export function isBlock(problem: BenchProblem): problem is BlockProblem {
  return problem.primitive === "block";
}

/** `m 8192 n 8192 k 8192`, `llama-3-8b tp-sp forward`. */
export function sizeText(problem: BenchProblem): string {
  if (isBlock(problem)) return `${problem.model} ${problem.cut} ${problem.pass}`;
  return `m ${problem.m} n ${problem.n} k ${problem.k}`;
}

/** For one device. */
export function flops(problem: BenchProblem): number {
  return isBlock(problem) ? blockFlops(problem) : 2 * problem.m * problem.n * problem.k;
}

/** The bytes that a device has to receive in any implementation. */
export function received(problem: BenchProblem): number {
  if (isBlock(problem)) return blockReceived(problem);
  const { primitive, m, n, k, dtype, devices } = problem;
  const others = ((devices - 1) / devices) * dtypes[dtype].bytes;
  switch (primitive) {
    case "tp-columnwise":
      return others * m * k;
    case "tp-rowwise":
      return others * m * n;
    case "tp-allreduce":
      return 2 * others * m * n;
    default:
      return unreachable(primitive);
  }
}
