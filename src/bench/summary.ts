/**
 * The summary of all sizes: geometric means of each implementation's speedups over others, and of the speedups of
 * Braid's best implementation at each size.
 */
import type { BenchRow, Figures } from "./bench-row.ts";
import { labelOf } from "./implementation-label.ts";

interface Comparison {
  readonly title: string;
  readonly ratioOf: (figures: Figures) => number | null;
}

const comparisons: readonly Comparison[] = [
  { title: "time of compute-only over its own time", ratioOf: ({ computeShare }) => computeShare },
  { title: "speedup over serial", ratioOf: ({ overSerial }) => overSerial },
  { title: "speedup over PyTorch's better path", ratioOf: ({ overPyTorch }) => overPyTorch },
];

/** Empty for a single size, whose table has everything. */
export function summaryLines(rows: readonly BenchRow[]): readonly string[] {
  const problems = [...new Set(rows.map(({ problem }) => problem))];
  if (problems.length < 2) return [];
  const names = [...new Set(rows.filter(({ name }) => name === "braid").map(labelOf))];
  const lines = comparisons.flatMap(({ title, ratioOf }) => {
    const best = problems.map((problem) => {
      const own = rows.filter((row) => row.problem === problem && row.name === "braid");
      return Math.max(...own.map(({ figures }) => (figures === null ? null : ratioOf(figures)) ?? 0));
    });
    if (best.some((ratio) => ratio === 0)) return [];
    const each = names.flatMap((label) => {
      const ratios = rows
        .filter((row) => labelOf(row) === label)
        .map(({ figures }) => (figures === null ? null : ratioOf(figures)) ?? 0);
      return ratios.length === problems.length && !ratios.includes(0) ? [`  ${text(ratios)}  ${label}`] : [];
    });
    return [
      `${title}, geometric mean of ${problems.length} sizes (least):`,
      ...each,
      `  ${text(best)}  the best of Braid's implementations at each size`,
    ];
  });
  return lines.length === 0 ? [] : [...lines, ""];
}

function text(ratios: readonly number[]): string {
  const mean = Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length);
  return `${mean.toFixed(3)} (${Math.min(...ratios).toFixed(3)})`;
}
