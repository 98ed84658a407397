/**
 * Random lowered programs under random schedules: if the recorded Program verifies, the rewritten one does, with the
 * same bits under several interleavings and on one queue per rank. Recordings with few streams reuse slots, and have
 * orders that a rewrite must keep.
 */
import { verify } from "@braid-compiler/braid";
import fc from "fast-check";
import { expect, it } from "vitest";
import { link } from "../../src/commands/link/link.ts";
import { copyStream } from "../../src/schedule/rewrites/copy-stream.ts";
import { applySchedule, type ScheduleOptions } from "../../src/schedule/schedule.ts";
import { recordSetting, settings } from "../verify/random/random-setting.ts";
import { outputsOf } from "./programs.ts";
import { draws, runs } from "../support/suite.ts";

/** Sums in GEMMs have tests of their own (gemm-sums.test.ts). */
const scheduleOptions: fc.Arbitrary<ScheduleOptions> = fc.record(
  {
    dropSignals: fc.boolean(),
    inPlace: fc.boolean(),
    ownLast: fc.boolean(),
    splitChunks: fc.integer({ min: 1, max: 3 }),
    earlyGathers: fc.boolean(),
    computeStreams: fc.integer({ min: 1, max: 3 }),
    batchSignals: fc.boolean(),
    smMargin: fc.constant(8),
  },
  { requiredKeys: [] },
);

it("rewrites of what verifies verify, and mean the same", async () => {
  const counts = { quick: 10, long: 40 };
  let rewritten = 0;
  await fc.assert(
    fc.asyncProperty(settings, scheduleOptions, fc.boolean(), async (setting, options, onCopyStream) => {
      const lists = recordSetting(setting);
      if (lists === null) return;
      const program = link(lists);
      if (!verify(program, { notes: false }).ok) return;
      const scheduled = applySchedule(program, options);
      const placed = onCopyStream ? copyStream.run(scheduled, "dedicated") : scheduled;
      if (placed !== program) rewritten++;
      expect(verify(placed, { notes: false }).findings).toEqual([]);
      const expected = await outputsOf(program, "seed:1");
      expect(await outputsOf(placed, "seed:2")).toEqual(expected);
      expect(await outputsOf(placed, "seed:3", { queues: "ranks" })).toEqual(expected);
    }),
    draws(counts),
  );
  expect(rewritten).toBeGreaterThan(runs(counts) / 8);
});
