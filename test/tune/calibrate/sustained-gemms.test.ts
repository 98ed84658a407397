/**
 * Times of more and more GEMMs in a run, on a machine with other load at times: disturbed measurements are left out.
 */
import { expect, it } from "vitest";
import { calibrationSizes } from "../../../src/tune/calibrate/calibration-host.ts";
import { sustainedGemms } from "../../../src/tune/calibrate/measure-gemms.ts";
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
