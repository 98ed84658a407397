/**
 * The interval against the runs in bench/results: 90 % of them are inside, also of runs that the errors were not found
 * in. Errors are found in all groups of runs but one, and the runs of that one are counted.
 */
import { beforeAll, describe, expect, it } from "vitest";
import { errorOf, fitErrors, isInside } from "../../bench/committed/fit-errors.ts";
import { type PredictedRun, predictedRuns } from "../../bench/committed/predicted-runs.ts";
import { groupOf, isCovered } from "../../bench/committed/sources.ts";
import { committedErrors } from "../../src/explain/interval.ts";

describe("of the programs in bench/results", () => {
  let runs: readonly PredictedRun[] = [];
  beforeAll(() => {
    runs = predictedRuns().filter(isCovered);
  }, 240_000);

  it("all are there", () => {
    expect(runs.length).toBeGreaterThanOrEqual(495);
  });

  it("the committed errors are those that are found in them", () => {
    expect(fitErrors(runs)).toEqual(committedErrors);
  });

  it("90 % are inside the interval", () => {
    expect(runs.filter((run) => isInside(run, committedErrors)).length / runs.length).toBeGreaterThanOrEqual(0.9);
  });

  it("90 % are inside the interval that the other groups of runs give", () => {
    const groups = [...new Set(runs.map(groupOf))];
    const inside = groups.flatMap((group) => {
      const errors = fitErrors(runs.filter((run) => groupOf(run) !== group));
      return runs.filter((run) => groupOf(run) === group && isInside(run, errors));
    });
    expect(inside.length / runs.length).toBeGreaterThanOrEqual(0.9);
  });

  it.each([
    ["4xH200", 198, 0.05],
    // A later machine than that of the profile.
    ["2xH200", 162, 0.08],
  ] as const)("those of braid bench on %s are predicted well in the geometric mean", (machine, count, most) => {
    const errors = runs.filter(({ source }) => source.endsWith(`${machine}.csv`)).map(errorOf);
    expect(errors.length).toBeGreaterThanOrEqual(count);
    expect(Math.expm1(errors.reduce((sum, error) => sum + error, 0) / errors.length)).toBeLessThan(most);
  });
});
