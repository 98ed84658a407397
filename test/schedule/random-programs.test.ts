/**
 * Random lowered programs under random schedules: if the recorded Program verifies, the rewritten one does, with the
 * same bits under several interleavings and on one queue per rank. Recordings with few streams reuse slots, and have
 * orders that a rewrite must keep.
 */
import { verify } from "braid";
import fc from "fast-check";
import { expect, it } from "vitest";
import { link } from "../../src/commands/link/link.ts";
import { copyStream } from "../../src/schedule/rewrites/copy-stream.ts";
import { applySchedule, type ScheduleOptions } from "../../src/schedule/schedule.ts";
import { recordSetting, settings } from "../verify/random/random-setting.ts";
import { outputsOf } from "./programs.ts";

const sizes = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 3 });

/** Without early sums, which may change bits. Sums in GEMMs have tests of their own (gemm-sums.test.ts). */
const scheduleOptions: fc.Arbitrary<ScheduleOptions> = fc.record(
  {
    dropSignals: fc.boolean(),
    inPlace: fc.boolean(),
    ownLast: fc.boolean(),
    splitChunks: fc.integer({ min: 1, max: 3 }),
    mergeGemms: sizes,
    earlyGathers: fc.boolean(),
    computeStreams: fc.integer({ min: 1, max: 3 }),
    kernelCopies: fc.constantFrom(1, 64),
    batchSignals: fc.boolean(),
    smMargin: fc.constant(8),
  },
  { requiredKeys: [] },
);

it("rewrites of what verifies verify, and mean the same", async () => {
  let rewritten = 0;
  await fc.assert(
    fc.asyncProperty(settings, scheduleOptions, sizes, fc.boolean(), async (setting, options, groups, onCopyStream) => {
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
      // Sums in another order have other bits, and the same ones in every order of streams.
      const early = applySchedule(program, { ...options, earlySums: groups });
      expect(verify(early, { notes: false }).findings).toEqual([]);
      expect(await outputsOf(early, "seed:4")).toEqual(await outputsOf(early, "seed:5", { queues: "ranks" }));
    }),
    { numRuns: 40 },
  );
  expect(rewritten).toBeGreaterThan(5);
});
