/**
 * Recording one rank takes steps in proportion to the ranks that it exchanges elements with, beside a few for every
 * rank of the team. Steps are counted, not timed.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { DeviceMesh, Fusion, type HostProgram, lower, set } from "@braid-compiler/braid";
import type * as braid from "@braid-compiler/braid";
import { startCounting, type StepCounter } from "../support/count-steps.ts";

let steps: StepCounter;
let record: typeof braid.record;

beforeAll(async () => {
  steps = await startCounting();
  ({ record } = await import("@braid-compiler/braid"));
});

afterAll(async () => {
  await steps.stop();
});

/** 4 chunks of 16 rows over more devices than a chunk has rows. */
function gathered(devices: number, rank: number): HostProgram {
  const f = new Fusion();
  const sharded = f.input([64, 8]);
  const whole = set(sharded);
  f.output(whole);
  for (const tensor of [sharded, whole]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  sharded.outerSplit(0, 4);
  sharded.outerSplit(1, devices).parallelize("DIDx");
  whole.outerSplit(0, 4).parallelize("Stream");
  return lower(f, { rank });
}

it.each([
  { what: "with a row of each chunk", rank: 0 },
  { what: "that only receives", rank: 31 },
])("four times the ranks, at most four times the steps on a rank $what", async ({ rank }) => {
  const [few, many] = [gathered(64, rank), gathered(256, rank)];
  const run = (host: HostProgram, devices: number) => (): void => void record(host, { rank, devices });
  run(few, 64)();
  const base = await steps.count(run(few, 64));
  const more = await steps.count(run(many, 256));
  expect(base).toBeGreaterThan(1000);
  expect(more / base).toBeLessThan(4);
});
