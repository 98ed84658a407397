/**
 * Steps of callers in a schedule: outputs read early, inputs written late or overwritten early, on the CPU's machine.
 */
import { describe, expect, test } from "vitest";
import { link } from "../../src/commands/link/link.ts";
import { createCpuBackend, parseInterleaving } from "../../src/cpu.ts";
import { buildLists } from "./list-builder.ts";

/** The output is the input, copied on stream 0. */
const program = link(buildLists(1, (list) => list.copy(0, list.input([4]), list.output([4]))));

async function outputUnder(schedule: string, runs = 1): Promise<readonly number[]> {
  const group = await createCpuBackend({ interleaving: parseInterleaving(schedule) }).open({
    world: 1,
    localRanks: [0],
  });
  const prepared = await group.prepare(program);
  const [input, output] = program.buffers.map(({ id }) => id);
  if (input === undefined || output === undefined) throw new Error("two buffers");
  prepared.write(input, new Uint8Array(Float32Array.of(1, 2, 3, 4).buffer));
  for (let run = 0; run < runs; run++) await prepared.execute();
  return [...new Float32Array(prepared.read(output).slice().buffer)];
}

describe("caller steps", () => {
  test("reads: before the copy the output is still zero, and after a second run what the first one left", async () => {
    expect(await outputUnder("reads:0\n0:0")).toEqual([0, 0, 0, 0]);
    expect(await outputUnder("reads:0\n0:0", 2)).toEqual([1, 2, 3, 4]);
    expect(await outputUnder("0:0\nreads:0")).toEqual([1, 2, 3, 4]);
  });

  test("writes: the copy finds other bytes before, and the inputs after", async () => {
    expect(await outputUnder("0:0\nwrites:0")).not.toEqual([1, 2, 3, 4]);
    expect(await outputUnder("writes:0\n0:0")).toEqual([1, 2, 3, 4]);
  });

  test("overwrites: the copy finds other bytes after; the next run has its inputs again", async () => {
    expect(await outputUnder("overwrites:0\n0:0")).not.toEqual([1, 2, 3, 4]);
    expect(await outputUnder("0:0\noverwrites:0", 2)).toEqual([1, 2, 3, 4]);
  });

  test("of a rank that there is not", async () => {
    await expect(outputUnder("reads:1\n0:0")).rejects.toThrow("interleaving-invalid");
  });
});
