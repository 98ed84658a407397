/** The summary of several blocks: the part of PyTorch's time beyond the floors that Braid saves. */
import type { BenchRow } from "../compare/bench-row.ts";
import { isBlock } from "../compare/bench-problem.ts";
import { labelOf } from "../compare/implementation-label.ts";
import { percentText } from "../../src/support/wording.ts";

/** Of one block, in milliseconds. */
interface BesideFloor {
  readonly saved: number;
  readonly beyond: number;
}

/** Empty without PyTorch, and for fewer than two blocks. */
export function blockSummary(rows: readonly BenchRow[]): readonly string[] {
  const problems = [...new Set(rows.map(({ problem }) => problem))].filter(isBlock);
  const own = rows.filter(({ name }) => name === "braid");
  const of = (problem: BenchRow["problem"], among: readonly BenchRow[]): BesideFloor | null => {
    const found = among.flatMap((row) => (row.problem === problem ? (besideFloor(row) ?? []) : []));
    return found.toSorted((a, b) => b.saved - a.saved)[0] ?? null;
  };
  const line = (name: string, among: readonly BenchRow[]): readonly string[] => {
    const each = problems.flatMap((problem) => of(problem, among) ?? []);
    if (each.length < problems.length) return [];
    const sum = (part: keyof BesideFloor): number => each.reduce((total, block) => total + block[part], 0);
    return sum("beyond") > 0 ? [`  ${percentText(sum("saved") / sum("beyond"))}  ${name}`] : [];
  };
  if (problems.length < 2) return [];
  const labels = [...new Set(own.map(labelOf))];
  const lines = [
    ...labels.flatMap((label) =>
      line(
        label,
        own.filter((row) => labelOf(row) === label),
      ),
    ),
    ...line("the best of Braid's implementations at each block", own),
  ];
  const title = `(PyTorch - this) / (PyTorch - floor), each summed over ${problems.length} blocks:`;
  return lines.length === 0 ? [] : [title, ...lines, ""];
}

/** Null without PyTorch's time, or a floor. */
function besideFloor({ figures }: BenchRow): BesideFloor | null {
  if (figures === null || figures.overPyTorch === null || figures.overFloor === null) return null;
  const pyTorch = figures.overPyTorch * figures.median;
  return { saved: pyTorch - figures.median, beyond: pyTorch - figures.median / figures.overFloor };
}
