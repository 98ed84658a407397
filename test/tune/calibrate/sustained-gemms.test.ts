/**
 * Times of more and more GEMMs in a run, on a machine with other load at times: disturbed measurements are left out.
 */
import { expect, it } from "vitest";
import { calibrationSizes } from "../../../src/tune/calibrate/calibration-host.ts";
import { gemmGrid, sustainedGemms } from "../../../src/tune/calibrate/measure-gemms.ts";
import type { Fusion } from "../../../src/ir/api/fusion.ts";
import { constantValue } from "../../../src/ir/scalar/fold.ts";
import { at } from "../../../src/support/invariant.ts";

const { counts } = calibrationSizes.cuda.sustained;

async function measured(times: readonly number[]): Promise<readonly (readonly [number, number])[]> {
  let run = 0;
  const calibration = { devices: 2, sizes: calibrationSizes.cuda, say: () => {}, took: async () => at(times, run++) };
  const found = await sustainedGemms(calibration);
  return found.map(({ microseconds, factor }) => [microseconds, factor]);
}

it("grow with load, and never fall", async () => {
  expect(counts).toEqual([1, 2, 4, 8, 16]);
  expect(await measured([100, 200, 440, 840, 1920])).toEqual([
    [100, 1],
    [200, 1],
    [440, 1.1],
    [840, 1.1],
    [1920, 1.2],
  ]);
});

it("leave out runs of more GEMMs that took no longer than runs of fewer", async () => {
  expect(await measured([735.7, 693.8, 1471.4, 1400, 11_771.2])).toEqual([
    [735.7, 1],
    [1471.4, 1],
    [11_771.2, 1],
  ]);
});

it("are those of single GEMMs in bfloat16, and of a run of milliseconds for floats of 8 bits", async () => {
  const sizes = { ...calibrationSizes.cuda, m: [128, 8192], n: [8192], k: [8192] };
  for (const [dtype, wanted] of [
    ["bfloat16", [1, 1]],
    ["float8_e4m3fn", [1, 60, 1, 6]],
  ] as const) {
    const counts: number[] = [];
    const took = async (fusion: Fusion): Promise<number> => {
      const count = fusion.outputs.length;
      counts.push(count);
      // Under load, GEMMs take a fifth longer.
      const one = constantValue(at(at(fusion.inputs, 0).extents, 0)) === 128 ? 100 : 1000;
      return count === 1 ? one : 1.2 * count * one;
    };
    const { teraflops } = await gemmGrid({ devices: 2, sizes, say: () => {}, took }, dtype);
    expect(counts).toEqual(wanted);
    const [short, long] = [128, 8192].map((m) => (2 * m * 8192 ** 2) / (m === 128 ? 100 : 1000) / 1e6);
    const slower = dtype === "bfloat16" ? 1 : 1.2;
    expect(teraflops).toEqual([expect.closeTo((short ?? 0) / slower), expect.closeTo((long ?? 0) / slower)]);
  }
});
