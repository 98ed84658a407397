/** What the rescheduler keeps saves work, and changes no Program. */
import { describe, expect, it } from "vitest";
import { compile } from "@braid-compiler/braid";
import { rescheduler } from "../../src/compile/reschedule.ts";
import { applySchedule, type ScheduleOptions } from "../../src/schedule/schedule.ts";
import { layeredFusions } from "../support/layered-fusions.ts";

const schedules: readonly ScheduleOptions[] = [
  { inPlace: true, ownLast: true, computeStreams: 2, copyStream: "dedicated" },
  { inPlace: true, splitChunks: 2, computeStreams: 2, batchSignals: true, copyStream: "dedicated" },
  { inPlace: true, computeStreams: 2 },
  { splitChunks: 2, computeStreams: 2 },
  { earlyGathers: true, computeStreams: 1, copyStream: "inline" },
];

describe.each(["gathers", "scatters"] as const)("%s", (name) => {
  const devices = 3;
  const fusion = layeredFusions[name](1, devices);
  const compilation = compile(fusion, { devices, streams: 8, backend: "cuda", verify: "off" });

  it.each([0, 100, Infinity])("makes the same Programs with at most %s commands kept", (most) => {
    const { under } = rescheduler(compilation, most);
    for (const schedule of [...schedules, ...schedules]) {
      expect(under(schedule).program).toEqual(applySchedule(compilation.recorded, schedule));
    }
  });

  it("keeps Programs up to the limit, and drops those not used for longest", () => {
    const [all, none] = [rescheduler(compilation), rescheduler(compilation, 0)];
    for (const schedule of schedules) {
      const { program } = all.under(schedule);
      expect(all.under(schedule).program).toBe(program);
      const made = none.under(schedule).program;
      if (made !== compilation.recorded) expect(none.under(schedule).program).not.toBe(made);
    }
  });
});
