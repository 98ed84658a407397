/** Every combination of rewrites: proven right, and with the same bits in every order of streams. */
import { type DType, verify } from "braid";
import { describe, expect, it } from "vitest";
import { applySchedule, type ScheduleOptions } from "../../src/schedule/schedule.ts";
import { copyStream } from "../../src/schedule/rewrites/copy-stream.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { devices, outputsOf, type Pipeline, pipelines, recorded, type Recording } from "./programs.ts";
import { keysOf } from "../../src/support/keys-of.ts";

const schedules: readonly ScheduleOptions[] = [
  { computeStreams: 1 },
  { computeStreams: 2 },
  { inPlace: true },
  { ownLast: true },
  { mergeGemms: [1, 3] },
  { mergeGemms: [4] },
  { mergeGemms: [2], computeStreams: 2 },
  { inPlace: true, mergeGemms: [1, 2], computeStreams: 1 },
  { splitChunks: 2 },
  { batchSignals: true },
  { inPlace: true, computeStreams: 1, kernelCopies: 64, batchSignals: true },
  { splitChunks: 4, mergeGemms: [2, 3], computeStreams: 1 },
  { inPlace: true, ownLast: true, splitChunks: 3, computeStreams: 2 },
  { inPlace: true, ownLast: true, mergeGemms: [3, 1], computeStreams: 1 },
];

const recordings: readonly Recording[] = [
  // One slot for all chunks, slots that are used again, a slot for each, and a buffer for all in their own order.
  { protocol: "get", streams: 1 },
  { protocol: "put", streams: 3 },
  { protocol: "get", streams: 4 },
  { protocol: "put", streams: 4 },
  { protocol: "get", streams: 4, shrink: false },
  { backend: "nccl", streams: 2 },
];

describe.each(keysOf(pipelines))("%s", (pipeline: Pipeline) => {
  it.each(recordings)("is the same under every schedule, recorded with %o", async (recording) => {
    const program = recorded(pipeline, recording);
    const expected = await outputsOf(program, "seed:1");
    for (const schedule of schedules) {
      const scheduled = applySchedule(program, schedule);
      for (const placed of new Set([scheduled, copyStream.run(scheduled, "dedicated")])) {
        const context = JSON.stringify(schedule);
        const { findings } = verify(placed, { notes: false });
        expect(findings, context).toEqual([]);
        expect(await outputsOf(placed, "seed:1"), context).toBe(expected);
        expect(await outputsOf(placed, "seed:2"), context).toBe(expected);
      }
    }
  });
});

describe("on the back ends of the CPU", () => {
  it.each<[DType, Pipeline, ScheduleOptions]>([
    ["bfloat16", "allgather + matmul", { inPlace: true, mergeGemms: [1, 3], computeStreams: 1 }],
    ["float", "allgather + matmul", { splitChunks: 2, computeStreams: 2 }],
    ["bfloat16", "matmul + reduce-scatter", { inPlace: true, ownLast: true, computeStreams: 2, earlySums: [2] }],
    ["half", "matmul + reduce-scatter", { ownLast: true, mergeGemms: [3, 1], earlySums: [1] }],
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
