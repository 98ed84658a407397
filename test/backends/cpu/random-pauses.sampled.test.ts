/**
 * The CPU back end on worker threads that pause at random: many runs of every example, all with the bits of the
 * deterministic machine.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Group, Program } from "@braid-compiler/braid";
import { openMachineGroup } from "../../../src/backends/cpu/machine-group.ts";
import { openThreadedGroup } from "../../../src/backends/cpu/threads/threaded-group.ts";
import { getOrMake } from "../../../src/support/invariant.ts";
import { patternFiles, patternProgram } from "../../support/example-program.ts";
import { runs } from "../../support/suite.ts";
import { digestOfOutputs, fillInputs } from "./inputs-and-outputs.ts";
import { smallRing } from "./small-ring.ts";

/** Of each example on 8 ranks with 8 streams, what the machine computes. */
const known = new Map<string, Promise<{ readonly program: Program; readonly expected: string }>>();

async function onMachine(name: string): Promise<{ readonly program: Program; readonly expected: string }> {
  const program = await patternProgram(name, 8, 8);
  const prepared = await openMachineGroup({}).prepare(program);
  fillInputs(program, prepared);
  await prepared.execute();
  return { program, expected: digestOfOutputs(program, prepared) };
}

describe.each([1, 2])("%i workers with random pauses", (workers) => {
  let group: Group;
  beforeAll(() => {
    group = openThreadedGroup({ workers, jitter: 11 });
  });
  afterAll(() => group.close());

  it.each(patternFiles)("%s: 8 ranks, 8 streams, the machine's bits in every run", async (name) => {
    const { program, expected } = await getOrMake(known, name, () => onMachine(name));
    const prepared = await group.prepare(program);
    fillInputs(program, prepared);
    for (let run = 0; run < runs({ quick: 1, long: 25 }); run++) {
      await prepared.execute({ timeout: 20 });
      expect(digestOfOutputs(program, prepared)).toBe(expected);
    }
    prepared.release();
  });

  it("many runs of a small pipeline", { timeout: 120_000 }, async () => {
    const program = smallRing(4);
    const prepared = await group.prepare(program);
    fillInputs(program, prepared);
    await prepared.execute({ timeout: 20 });
    const expected = digestOfOutputs(program, prepared);
    for (let run = 0; run < runs({ quick: 40, long: 500 }); run++) await prepared.execute({ timeout: 20 });
    expect(digestOfOutputs(program, prepared)).toBe(expected);
    prepared.release();
  });
});
