/** Combinations of rewrites verify, and have the same bits under every interleaving. */
import { verify } from "@braid-compiler/braid";
import { expect, it } from "vitest";
import { copyStream } from "../../src/schedule/rewrites/copy-stream.ts";
import { applySchedule, type ScheduleOptions } from "../../src/schedule/schedule.ts";
import { keysOf } from "../../src/support/invariant.ts";
import { combinations } from "../support/split-cases.ts";
import { sample } from "../support/suite.ts";
import { outputsOf, pipelines, recorded, type Recording } from "./programs.ts";

const schedules: readonly ScheduleOptions[] = [
  { computeStreams: 1 },
  { computeStreams: 2 },
  { inPlace: true },
  { ownLast: true },
  { earlyGathers: true },
  { earlyGathers: true, inPlace: true, computeStreams: 1 },
  { computeStreams: 2 },
  { inPlace: true, computeStreams: 1 },
  { splitChunks: 2 },
  { batchSignals: true },
  { inPlace: true, computeStreams: 1, batchSignals: true },
  { splitChunks: 4, computeStreams: 1 },
  { inPlace: true, ownLast: true, splitChunks: 3, computeStreams: 2 },
  { inPlace: true, ownLast: true, computeStreams: 1 },
  { dropSignals: true },
  { dropSignals: true, inPlace: true, ownLast: true, gemmSums: true, computeStreams: 1 },
  { dropSignals: true, splitChunks: 2, batchSignals: true, computeStreams: 2 },
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

const cases = combinations({ pipeline: keysOf(pipelines), recording: recordings, schedule: schedules });

it.each(sample(cases, 37, 2))("$pipeline recorded with $recording under $schedule", async (each) => {
  const program = recorded(each.pipeline, each.recording);
  const expected = await outputsOf(program, "seed:1");
  const scheduled = applySchedule(program, each.schedule);
  for (const placed of new Set([scheduled, copyStream.run(scheduled, "dedicated")])) {
    const { findings } = verify(placed, { notes: false });
    expect(findings).toEqual([]);
    expect(await outputsOf(placed, "seed:1")).toBe(expected);
    expect(await outputsOf(placed, "seed:2")).toBe(expected);
  }
});
