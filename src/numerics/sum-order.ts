/**
 * The order in which the CPU adds floats: the terms of a block of 64 in increasing index, the sums of 64 blocks in
 * order, and so on. A term takes part in about 64 log(n) / log(64) additions, so the error grows like the logarithm of
 * the number n of terms. The order depends on n alone, never on layouts, chunks or workers.
 *
 *     2^25 terms: 5 levels, at most 64 + 64 + 64 + 64 + 2 additions per term
 *
 * Factors are multiplied in the same order. A contraction has longer first blocks, which stay in registers.
 */
import { accumulatorOf, type DType, dtypes } from "./dtype.ts";
import { fail } from "../diagnostics/diagnostic.ts";

/** The number of terms in a block, at every level. */
export const sumBlock = 64;

/** The number of terms in the first block of a contraction: a packed strip has 1 KiB per row. */
export function contractionBlock(dtype: DType): number {
  return 1024 / dtypes[accumulatorOf(dtype)].bytes;
}

/** The number of levels for `terms` terms with first blocks of `first`; 1 if all fit in one block. */
export function sumLevels(terms: number, first = sumBlock): number {
  let levels = 1;
  for (let reached = first; reached < terms; reached *= sumBlock) levels++;
  return levels;
}

/* The ends of a grouped matmul's groups (ir/ops/kinds/grouped.ts), which only a run knows. */

/** Throws `group-ends-invalid` for ends that fall, or that are past the last row. */
export function requireGroupEnds(ends: readonly number[], rows: number): void {
  if (ends.every((end, i) => end >= (ends[i - 1] ?? 0) && end <= rows)) return;
  fail({
    code: "group-ends-invalid",
    message: "the ends of a grouped matmul's groups fall, or are past the last row",
    place: { kind: "call", text: "groupedMatmul" },
    found: `ends ${ends.length > 16 ? `${ends.slice(0, 16).join(", ")}, ..` : ends.join(", ")} of ${rows} rows`,
    expected: `numbers from 0 to ${rows}, none below the one before it`,
    help: "give the rows up to the end of each group: cumsum(counts, 0) of counts whose sum is at most the rows",
  });
}
