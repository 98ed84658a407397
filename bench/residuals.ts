/**
 * Errors of predictions against the runs in bench/results: by group, and by class of commands, as `committedErrors` in
 * src/explain/interval.ts has them. Cross-validation leaves out one group, finds the errors in the others, and counts
 * the runs of the group inside the interval. It is not part of `npm run bench`.
 *
 *     npx jiti bench/residuals.ts
 */
import { committedErrors, meanErrorOf, meanErrorsWithin } from "../src/explain/interval.ts";
import { errorOf, fitErrors, isInside } from "./committed/fit-errors.ts";
import { type PredictedRun, predictedRuns } from "./committed/predicted-runs.ts";
import { groupOf, isCovered } from "./committed/sources.ts";

const runs = predictedRuns();
const covered = runs.filter(isCovered);
console.log(`${runs.length} runs, ${covered.length} covered by the model`);
const { classes, run } = fitErrors(covered);
console.log("found    ", JSON.stringify(classes), "run", run);
console.log("committed", JSON.stringify(committedErrors.classes), "run", committedErrors.run);

console.log("\ngroup: runs, mean error, inside; left out: inside, half width");
for (const group of new Set(covered.map(groupOf))) {
  const own = covered.filter((each) => groupOf(each) === group);
  const others = fitErrors(covered.filter((each) => groupOf(each) !== group));
  const inside = own.filter((each) => isInside(each, committedErrors));
  const left = own.filter((each) => isInside(each, others));
  const figures = [percent(meanError(own)), percent(inside.length / own.length), percent(left.length / own.length)];
  console.log(`  ${group}: ${own.length}, ${figures.join(", ")}, ${percent(halfWidth(own))}`);
}
console.log(`mean error of all ${percent(meanError(covered))}`);
console.log(`inside ${percent(covered.filter((each) => isInside(each, committedErrors)).length / covered.length)}`);

console.log("\nlargest errors (ms measured, predicted)");
for (const each of runs.toSorted((a, b) => errorOf(b) - errorOf(a)).slice(0, 12)) {
  console.log(`  ${each.measured.toFixed(3)} ${each.predicted.toFixed(3)}  ${each.text} (${each.source})`);
}

/** The geometric mean of the ratios of the greater to the smaller time, minus 1. */
function meanError(of: readonly PredictedRun[]): number {
  return Math.exp(of.reduce((sum, each) => sum + errorOf(each), 0) / of.length) - 1;
}

/** The median. */
function halfWidth(of: readonly PredictedRun[]): number {
  const widths = of
    .map(({ predicted, path }) => Math.exp(meanErrorsWithin * meanErrorOf(predicted, path, committedErrors)) - 1)
    .sort((a, b) => a - b);
  return widths[widths.length >> 1] ?? NaN;
}

function percent(part: number): string {
  return `${(100 * part).toFixed(1)} %`;
}
