/** Equal regions, of which one is rewritten: each is as if it had been rewritten by itself. */
import { expect, it } from "vitest";
import { printProgram } from "../../src/commands/print-program.ts";
import { applyByRegion } from "../../src/schedule/by-region.ts";
import { createEqualParts } from "../../src/schedule/equal-parts.ts";
import { compileRegions, withRegionsJoined } from "../../src/tune/regions/compile-regions.ts";
import { findRegions } from "../../src/tune/regions/split-regions.ts";
import { exampleFusion } from "../support/example-program.ts";
import { everyNth } from "../support/suite.ts";

const loops = { deviceLoops: true, backend: "cuda", p2p: "rotated", protocol: "put" } as const;

const candidates = [
  { lowering: { overlap: false, backend: "nccl" }, schedule: { copyStream: "inline" } },
  { lowering: loops, schedule: { computeStreams: 2, inPlace: true, ownLast: true, copyStream: "dedicated" } },
  { lowering: loops, schedule: { computeStreams: 1, splitChunks: 2, smMargin: 8, batchSignals: true } },
] as const;

it.each(everyNth(candidates, 3))("layers of Llama, both passes: $schedule", async (candidate) => {
  const params = { LAYERS: 3, BACKWARD: 1, B: 2 };
  const found = findRegions(await exampleFusion("hosts/llama.ts", 2, params), {});
  if (found === null) throw new Error("no regions");
  const chosen = found.regions.map(() => candidate);
  const compiled = compileRegions(found, chosen, { devices: 2 });
  const { recorded, program } = compiled;
  const schedules = chosen.map(({ schedule }) => schedule);
  let rewritten = 0;
  const parts = createEqualParts();
  const counting = { ...parts, keep: (...kept: Parameters<typeof parts.keep>) => (rewritten++, parts.keep(...kept)) };
  expect(printProgram(applyByRegion(recorded, schedules, true, counting))).toBe(printProgram(program));
  expect(rewritten).toBeLessThan(0.9 * schedules.length);
  const apart = applyByRegion(recorded, schedules, true, { find: () => null, keep: () => {} });
  expect(printProgram(apart)).toBe(printProgram(program));
  expect(apart).toEqual(program);
  expect(printProgram(withRegionsJoined(compiled).program)).toBe(printProgram(applyByRegion(recorded, schedules)));
});
