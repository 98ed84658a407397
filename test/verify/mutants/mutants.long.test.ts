/**
 * On a part of all mutants, different ones for every number of devices and streams, verifier and judge agree. counts.md
 * has all of them.
 */
import { beforeAll, describe, expect, it } from "vitest";
import { link } from "@braid-compiler/braid";
import { type MemoryModel, memoryModels } from "../../../src/compile/memory-models.ts";
import { verify } from "../../../src/verify/verify.ts";
import { judge } from "../judge/judge.ts";
import { compareMutants } from "./compare.ts";
import { mutatedKinds } from "./mutate.ts";
import { type SmallProgram, smallPrograms } from "./programs.ts";

interface Size {
  readonly devices: number;
  readonly streams: number;
  readonly step: number;
  /** Braid's if not given. */
  readonly model?: MemoryModel;
}

const sizes: readonly Size[] = [
  { devices: 2, streams: 1, step: 80 },
  { devices: 2, streams: 2, step: 83 },
  { devices: 2, streams: 3, step: 89 },
  { devices: 3, streams: 2, step: 421 },
  { devices: 3, streams: 3, step: 443 },
  { devices: 3, streams: 2, step: 457, model: memoryModels.nvfuser },
];

describe.each(sizes)("$devices devices and $streams streams", ({ devices, streams, step, model }) => {
  let programs: readonly SmallProgram[];
  beforeAll(async () => {
    programs = await smallPrograms(devices, streams, model);
  }, 60_000);

  it("programs are right", () => {
    for (const { name, lists } of programs) {
      const program = link(lists);
      const errors = verify(program).findings.filter(({ severity }) => severity === "error");
      expect([name, errors.map(({ code }) => code), judge(program).ok]).toEqual([name, [], true]);
    }
  }, 60_000);

  it(`one of ${step} mutants: the same verdict`, () => {
    const { counts, disagreements } = compareMutants(programs, step, devices + streams);
    expect(disagreements).toEqual([]);
    const kinds = new Set([...counts.keys()].map((row) => row.split(" ")[0]));
    expect(kinds.size).toBeGreaterThanOrEqual(mutatedKinds.length - 2);
    const outcomes = [...counts.values()];
    expect(outcomes.some(({ wrong }) => wrong > 0)).toBe(true);
    expect(outcomes.some(({ right }) => right > 0)).toBe(true);
  }, 120_000);
});
