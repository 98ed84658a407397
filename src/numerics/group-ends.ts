/** The ends of a grouped matmul's groups (ir/ops/kinds/grouped.ts), which only a run knows. */
import { fail } from "../diagnostics/diagnostic.ts";

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
