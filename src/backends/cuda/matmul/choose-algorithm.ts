/**
 * Chooses the algorithm of a GEMM by trial, once per GPU model: later processes find it on disk. A cached algorithm
 * counts only if it is among those that the library proposes now.
 */
import { createHash } from "node:crypto";
import path from "node:path";
import { readCached, writeCached } from "../require-gpus.ts";
import { fastestAlgorithm } from "./fastest-algorithm.ts";
import type { GemmLayout, MatrixLayout } from "./gemm-layout.ts";
import { type TrialPlace, type TrialTools, withTrial } from "./gemm-trial.ts";

export interface AlgorithmChoice {
  readonly layout: GemmLayout;
  /** Of the left operand, the right operand and the result. */
  readonly alignments: readonly number[];
  readonly smCount: number;
  /** By number: a cublasLtMatmulAlgo_t. */
  readonly algorithms: readonly Uint8Array[];
  readonly queueOf: (place: TrialPlace) => (algorithm: number) => number;
}

/** The number of the algorithm to use. */
export type ChooseAlgorithm = (choice: AlgorithmChoice) => number;

export interface ChoosingTools extends TrialTools {
  /** Of cuBLASLt. */
  readonly version: number;
  /** Null for none. */
  readonly cacheFolder: string | null;
}

export function createAlgorithmChooser({ version, cacheFolder, ...tools }: ChoosingTools): ChooseAlgorithm {
  const { name, smCount: allSms } = tools.gpu;
  return ({ layout, alignments, smCount, algorithms, queueOf }) => {
    if (algorithms.length === 1) return 0;
    const key = JSON.stringify([version, name, allSms, ...keyOf(layout), alignments, smCount]);
    const hash = createHash("sha256").update(key).digest("hex");
    const file = cacheFolder === null ? null : path.join(cacheFolder, `${hash}.gemm`);
    const cached = file === null ? null : readCached(file);
    const known = algorithms.findIndex((bytes) => cached !== null && Buffer.compare(bytes, cached) === 0);
    if (known !== -1) return known;
    const found = withTrial(tools, layout, algorithms.length, queueOf, fastestAlgorithm);
    const algorithm = algorithms[found ?? 0];
    if (found !== null && file !== null && algorithm !== undefined) writeCached(file, algorithm);
    return found ?? 0;
  };
}

/** As python/src/braid_torch/cuda/choose_gemm.py writes it. */
function keyOf({
  dtype,
  hasBias,
  accumulate,
  batchCount,
  left,
  right,
  result,
  scaled,
}: GemmLayout): readonly unknown[] {
  const matrix = ({ rows, columns, leading, transposed, batchStride }: MatrixLayout): readonly unknown[] => [
    rows,
    columns,
    leading,
    transposed,
    batchStride,
  ];
  const blocks = scaled?.blocks === undefined ? [] : [scaled.blocks.left, scaled.blocks.right];
  const scales = scaled === undefined ? [] : [[scaled.left, scaled.right, scaled.vectors, ...blocks]];
  return [dtype, hasBias, accumulate === true, batchCount, ...[left, right, result].map(matrix), ...scales];
}
