/**
 * Predictions against the runs in bench/results, by kind of run: how far off they are, and how many are inside the interval
 * (docs/simulation.md). What src/simulate/gemm-cost.ts and src/explain/interval.ts have is found in half of the programs; the
 * table is of the other half. Then without the kind, or without the machine, in all that is used for the fit. It is not
 * part of `npm run bench`.
 *
 *     npx jiti bench/residuals.ts
 *     npx jiti bench/residuals.ts NEW.csv ...       only the rows of these files, by the committed figures
 */
import { inUse } from "../src/simulate/gemm-cost.ts";
import { committedErrors, type MeanErrors } from "../src/simulate/mean-errors.ts";
import { runsIn } from "./committed/bench-runs.ts";
import { errorOf, fit, halfOf, isCovered, isForFit, isInside, withInUse } from "./committed/fit-errors.ts";
import { committedRuns, type PredictedRun, predictedRuns } from "./committed/predicted-runs.ts";

const files = process.argv.slice(2);
if (files.length > 0) {
  const runs = predictedRuns(files.flatMap((file) => runsIn(file, file)));
  table(
    "kind",
    grouped(runs, ({ kind }) => kind),
  );
  table(
    "file",
    grouped(runs, ({ source }) => source),
  );
} else {
  const all = committedRuns();
  const covered = all.filter(isCovered);
  const found = fit(covered.filter(isForFit));
  console.log(`${all.length} runs, ${covered.length} covered, ${covered.filter(isForFit).length} of them for the fit`);
  console.log("found    ", JSON.stringify(found.inUse), JSON.stringify(found.errors));
  console.log("committed", JSON.stringify(inUse({ on: "cuda" })), JSON.stringify(committedErrors));
  console.log("\nruns that the fit has not seen");
  table(
    "kind",
    grouped(
      covered.filter((run) => !isForFit(run)),
      ({ kind }) => kind,
    ),
  );
  console.log("\nall covered runs");
  table(
    "kind",
    grouped(covered, ({ kind }) => kind),
  );
  console.log("\nnot covered, but for GEMMs in float");
  const pipelines = all.filter(({ kind }) => kind === "pipelines of the self-test");
  console.log(rowText("pipelines of the self-test", pipelines, committedErrors));
  console.log("\neach kind, by a fit to all others");
  leftOut(covered, ({ kind }) => kind);
  console.log("\neach machine, by a fit to all others");
  leftOut(covered, ({ machine }) => machine);
  console.log("\nlargest errors (ms measured, predicted)");
  for (const run of all.toSorted((a, b) => errorOf(b) - errorOf(a)).slice(0, 12)) {
    console.log(`  ${run.measured.toFixed(3)} ${run.milliseconds.toFixed(3)}  ${run.text} (${run.source})`);
  }
}

function leftOut(runs: readonly PredictedRun[], nameOf: (run: PredictedRun) => string): void {
  const inside: PredictedRun[] = [];
  for (const [name, own] of grouped(runs, nameOf)) {
    const others = fit(runs.filter((run) => nameOf(run) !== name));
    const moved = own.map((run) => withInUse(run, others.inUse));
    inside.push(...moved.filter((run) => isInside(run, others.errors)));
    console.log(rowText(name, moved, others.errors));
  }
  console.log(`  inside of all: ${percent(inside.length / runs.length)}`);
}

function table(head: string, groups: ReadonlyMap<string, readonly PredictedRun[]>): void {
  console.log(`  ${head.padEnd(28)} runs  median  mean error  inside  half width`);
  for (const [name, runs] of groups) console.log(rowText(name, runs, committedErrors));
  const all = [...groups.values()].flat();
  console.log(rowText("all", all, committedErrors));
}

/** `median`: of measured over predicted time. `half width`: the mean. */
function rowText(name: string, runs: readonly PredictedRun[], errors: MeanErrors): string {
  const ratios = runs.map(({ measured, milliseconds }) => measured / milliseconds).sort((a, b) => a - b);
  const error = Math.expm1(meanOf(runs.map(errorOf)));
  const half = meanOf(runs.map((run) => halfOf(run, errors)).filter(Number.isFinite));
  const inside = runs.filter((run) => isInside(run, errors)).length / runs.length;
  const figures = [(ratios[ratios.length >> 1] ?? NaN) - 1, error, inside, Math.expm1(half)];
  const cells = [
    String(runs.length).padStart(4),
    ...figures.map((each, i) => percent(each).padStart([7, 10, 7, 10][i] ?? 0)),
  ];
  return `  ${name.padEnd(28)} ${cells.join(" ")}`;
}

function grouped(
  runs: readonly PredictedRun[],
  nameOf: (run: PredictedRun) => string,
): ReadonlyMap<string, readonly PredictedRun[]> {
  return new Map([...new Set(runs.map(nameOf))].map((name) => [name, runs.filter((run) => nameOf(run) === name)]));
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, each) => sum + each, 0) / values.length;
}

function percent(part: number): string {
  return `${(100 * part).toFixed(1)} %`;
}
