/**
 * The interval against the runs in bench/results. Its figures were found in half of the programs: 90 % of the others are
 * inside, 85 to 95 % of each kind of run, and the interval is no wider than that needs.
 */
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { runsIn } from "../../bench/committed/bench-runs.ts";
import { resultsFile, type RunKind, runKinds } from "../../bench/committed/committed-run.ts";
import { errorOf, fit, halfOf, isCovered, isForFit, isInside, withInUse } from "../../bench/committed/fit-errors.ts";
import { committedRuns, type PredictedRun, predictedRuns } from "../../bench/committed/predicted-runs.ts";
import { inUse } from "../../src/simulate/gemm-cost.ts";
import { committedErrors } from "../../src/simulate/mean-errors.ts";

/** The greatest mean half width in percent. */
const kinds: { readonly [K in RunKind]: number | null } = {
  "allgather + matmul": 8.5,
  "matmul + reduce-scatter": 8.5,
  "matmul + all-reduce": 11,
  "communication alone": 15,
  "few rows": 22,
  "transformer blocks": 7,
  MLPs: 10,
  "kernels alone": 15,
  "pipelines of the self-test": null,
};

const coveredKinds = runKinds.filter((kind) => kinds[kind] !== null);

describe("of the programs in bench/results", () => {
  let runs: readonly PredictedRun[] = [];
  let floats: readonly PredictedRun[] = [];
  beforeAll(() => {
    const all = committedRuns();
    runs = all.filter(isCovered);
    floats = all.filter(({ text }) => text.includes("of float 4096"));
  }, 600_000);

  const insideOf = (some: readonly PredictedRun[], errors = committedErrors): number =>
    some.filter((run) => isInside(run, errors)).length / some.length;
  const of = (kind: RunKind): readonly PredictedRun[] => runs.filter((run) => run.kind === kind);
  const medianOf = (some: readonly PredictedRun[]): number => {
    const ratios = some.map(({ measured, milliseconds }) => measured / milliseconds).sort((a, b) => a - b);
    return ratios[ratios.length >> 1] ?? NaN;
  };

  it("all are there", () => {
    expect(runs.length).toBeGreaterThanOrEqual(1099);
  });

  it("the committed figures are those that are found in half of the programs", () => {
    const found = fit(runs.filter(isForFit));
    expect(found.errors).toEqual(committedErrors);
    expect(found.inUse).toEqual(inUse({ on: "cuda" }));
  }, 120_000);

  it("90 % of the other half are inside", () => {
    const inside = insideOf(runs.filter((run) => !isForFit(run)));
    expect(inside).toBeGreaterThanOrEqual(0.88);
    expect(inside).toBeLessThanOrEqual(0.92);
  });

  it.each([
    ["unseen", { all: 85, gather: 91, scatter: 72, allreduce: 78 }],
    ["unseen-again", { all: 84, gather: 94, scatter: 66, allreduce: 78 }],
  ] as const)(
    "of a machine that is in no fit, as many are inside as docs/simulation.md says: %s",
    (machine, { all, gather, scatter, allreduce }) => {
      const names = ["tp-columnwise", "tp-rowwise", "tp-allreduce", "block"];
      const files = names.map((name) => `${machine}-${name}-2xH200.csv`);
      const unseen = predictedRuns(files.flatMap((file) => runsIn(fileURLToPath(resultsFile(file)), file)));
      expect(unseen).toHaveLength(192);
      const percent = (kind: RunKind): number => Math.round(100 * insideOf(unseen.filter((run) => run.kind === kind)));
      expect(Math.round(100 * insideOf(unseen))).toBe(all);
      expect(percent("allgather + matmul")).toBe(gather);
      expect(percent("matmul + reduce-scatter")).toBe(scatter);
      expect(percent("matmul + all-reduce")).toBe(allreduce);
      expect(percent("transformer blocks")).toBe(100);
    },
    120_000,
  );

  it.each(coveredKinds)(
    "%s: 85 to 95 % of the other half are inside, and of all, and the interval is narrow",
    (kind) => {
      const own = of(kind);
      for (const some of [own, own.filter((run) => !isForFit(run))]) {
        const inside = Math.round(100 * insideOf(some));
        expect(inside).toBeGreaterThanOrEqual(85);
        expect(inside).toBeLessThanOrEqual(95);
      }
      const half = own.reduce((sum, run) => sum + halfOf(run, committedErrors), 0) / own.length;
      expect(100 * Math.expm1(half)).toBeLessThan(kinds[kind] ?? NaN);
    },
  );

  it.each(coveredKinds)("%s: predictions are not biased by more than 4 %", (kind) => {
    expect(Math.abs(medianOf(of(kind)) - 1)).toBeLessThan(0.04);
  });

  it.each(["transformer blocks", "MLPs", "few rows", "kernels alone"] as const)(
    "%s: 85 % are inside what the other kinds give",
    (kind) => {
      const others = fit(runs.filter((run) => run.kind !== kind));
      const moved = of(kind).map((run) => withInUse(run, others.inUse));
      expect(Math.round(100 * insideOf(moved, others.errors))).toBeGreaterThanOrEqual(85);
    },
    120_000,
  );

  it.each([
    ["4xH200", /tp-.*-4xH200/, 192, 0.05],
    ["2xH200", /^tp-.*-2xH200/, 156, 0.05],
    ["2xH200, a machine that the model was not made with", /^interval-tp-.*-2xH200/, 176, 0.1],
    ["2xH100", /tp-.*-2xH100/, 366, 0.07],
  ] as const)("those of primitives on %s are predicted well in the geometric mean", (_, files, count, most) => {
    const errors = runs.filter(({ source }) => files.test(source)).map(errorOf);
    expect(errors.length).toBeGreaterThanOrEqual(count);
    expect(Math.expm1(errors.reduce((sum, error) => sum + error, 0) / errors.length)).toBeLessThan(most);
  });

  it("GEMMs in float are inside an interval of at most 60 % to either side, and have no calibration", () => {
    expect(floats).toHaveLength(2);
    for (const run of floats) {
      expect(isCovered(run)).toBe(false);
      expect(run.assumptions.map(({ text }) => text)).toContain(
        "no calibration for float: GEMMs are timed as in bfloat16, at most at 1/16 of the fastest rate",
      );
      expect(isInside(run, committedErrors)).toBe(true);
      expect(Math.expm1(halfOf(run, committedErrors))).toBeLessThan(0.6);
    }
  });
});
