/**
 * Every rewrite on pipelines of every layout of allgather + matmul, including those that add chunks into one output in
 * order.
 */
import { describe, it } from "vitest";
import type { ScheduleOptions } from "../../src/schedule/schedule.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { layoutFusion, layouts } from "../support/layout-fusions.ts";

const rewrites: readonly ScheduleOptions[] = [
  { inPlace: true, ownLast: true, computeStreams: 1 },
  { splitChunks: 2, computeStreams: 2 },
  { inPlace: true, computeStreams: 2, batchSignals: true },
];

describe.each(layouts)("$gathered gathered, operands $operands", (layout) => {
  // The protocols take turns, so that every rewrite meets both over the layouts.
  it.each(rewrites)("%j leaves the results", async (schedule) => {
    const devices = 4;
    const turn = rewrites.indexOf(schedule) + layouts.indexOf(layout);
    const protocol = turn % 2 === 0 ? "get" : "put";
    const fusion = layoutFusion(layout, { devices, chunks: null, m: 4, n: 4, k: 4 });
    const lowering = { backend: "cuda", protocol, accumulate: true } as const;
    await expectOracle(fusion, { devices, schedule: { ...schedule, copyStream: "dedicated" }, ...lowering });
  });
});
