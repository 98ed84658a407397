/**
 * Wherever an order of a wrong mutant gives other outputs, a schedule of the verifier does. A part of all mutants; `npm run test:campaign -- replays` replays more of them, and replays.md has
 * the numbers.
 */
import { describe, expect, it } from "vitest";
import { type MemoryModel, memoryModels } from "../../../src/compile/memory-models.ts";
import { replayMutants } from "./replay-mutants.ts";
import { smallPrograms } from "./programs.ts";

interface Size {
  readonly devices: number;
  readonly streams: number;
  readonly step: number;
  /** Braid's if not given. */
  readonly model?: MemoryModel;
}

const sizes: readonly Size[] = [
  { devices: 2, streams: 1, step: 151 },
  { devices: 2, streams: 2, step: 307 },
  { devices: 3, streams: 3, step: 4001 },
  { devices: 2, streams: 2, step: 311, model: memoryModels.nvfuser },
];

describe.each(sizes)("$devices devices and $streams streams", ({ devices, streams, step, model }) => {
  it(`one of ${step} mutants: schedules show what can differ`, async () => {
    const { replays, complaints } = await replayMutants(await smallPrograms(devices, streams, model), step);
    expect(complaints).toEqual([]);
    expect(replays.wrong).toBeGreaterThan(0);
    expect(replays.shown).toBeGreaterThan(0);
  }, 120_000);
});
