/**
 * Combined rewrites give the oracle's results on worker threads and on the machine. combined-rewrites.sampled.test.ts
 * verifies more combinations.
 */
import type { DType } from "@braid-compiler/braid";
import { describe, it } from "vitest";
import type { ScheduleOptions } from "../../src/schedule/schedule.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { devices, type Pipeline, pipelines } from "./programs.ts";

describe("on the back ends of the CPU", () => {
  it.each<[DType, Pipeline, ScheduleOptions]>([
    ["bfloat16", "allgather + matmul", { inPlace: true, computeStreams: 1 }],
    ["float", "allgather + matmul", { splitChunks: 2, computeStreams: 2 }],
    ["bfloat16", "matmul + reduce-scatter", { inPlace: true, ownLast: true, computeStreams: 2 }],
    ["half", "matmul + reduce-scatter", { ownLast: true }],
  ])("%s %s has the oracle's results under %o", async (dtype, pipeline, schedule) => {
    await expectOracle(pipelines[pipeline](dtype), {
      devices,
      streams: devices,
      backend: "cuda",
      insertReshardingAfter: pipeline === "matmul + reduce-scatter",
      protocol: pipeline === "matmul + reduce-scatter" ? "put" : "get",
      schedule,
    });
  });
});
