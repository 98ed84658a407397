/**
 * Rewrites take steps in proportion to the commands: three times the layers take three times the steps. Steps are
 * counted, not timed. bench/growth.ts measures times.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compile, type CompileOptions, type Program } from "@braid-compiler/braid";
import type { applySchedule, ScheduleOptions } from "../../src/schedule/schedule.ts";
import { keysOf } from "../../src/support/invariant.ts";
import { startCounting, type StepCounter } from "../support/count-steps.ts";
import { layeredFusions } from "../support/layered-fusions.ts";

const devices = 3;
const [layers, times] = [12, 3];

const lowerings: Readonly<Record<string, Partial<CompileOptions>>> = {
  get: { backend: "cuda", protocol: "get" },
  library: { backend: "nccl" },
};

const schedules: readonly ScheduleOptions[] = [
  { dropSignals: true },
  { inPlace: true },
  { inPlace: true, gemmSums: true },
  { ownLast: true },
  { splitChunks: 2 },
  { earlyGathers: true },
  { computeStreams: 2 },
  { batchSignals: true },
  { smMargin: 8 },
  { copyStream: "dedicated" },
];

type Layered = keyof typeof layeredFusions;

let steps: StepCounter;
let apply: typeof applySchedule;

beforeAll(async () => {
  steps = await startCounting();
  ({ applySchedule: apply } = await import("../../src/schedule/schedule.ts"));
});

afterAll(async () => {
  await steps.stop();
});

function recorded(name: Layered, count: number, lowering: Partial<CompileOptions>): Program {
  return compile(layeredFusions[name](count, devices), { devices, streams: 8, ...lowering, verify: "off" }).program;
}

describe.each(keysOf(layeredFusions))("%s", (name) => {
  it.each(Object.entries(lowerings))("by %s", async (_, lowering) => {
    const [few, many] = [recorded(name, layers, lowering), recorded(name, times * layers, lowering)];
    const slow: Record<string, number> = {};
    for (const schedule of schedules) {
      apply(few, schedule);
      const base = await steps.count(() => void apply(few, schedule));
      const more = await steps.count(() => void apply(many, schedule));
      // What a signal guarantees is followed up to 256 accesses, which few layers do not reach, and heaps add a
      // logarithm. Quadratic steps would be 9 times as many.
      if (more > 1.75 * times * base) slow[JSON.stringify(schedule)] = more / base;
    }
    expect(slow).toEqual({});
  });
});
