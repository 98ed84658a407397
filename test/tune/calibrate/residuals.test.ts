/** Residuals of a calibration: what differs between tables and the sizes in between, by class of commands. */
import { expect, it } from "vitest";
import { interpolatedTime } from "../../../src/simulate/interpolate.ts";
import type { Timing } from "../../../src/simulate/machine-profile.ts";
import { committedErrors } from "../../../src/simulate/mean-errors.ts";
import { calibrationSizes } from "../../../src/tune/calibrate/calibration-host.ts";
import { type MeasuredTables, residualsOf, sizesBetween } from "../../../src/tune/calibrate/residuals.ts";

const timings: readonly Timing[] = [
  { bytes: 1024, microseconds: 2 },
  { bytes: 4096, microseconds: 4 },
  { bytes: 16_384, microseconds: 10 },
];

function tables(list: readonly Timing[], teraflops: readonly number[], m: readonly number[]): MeasuredTables {
  return {
    products: [{ dtype: "float", m, n: [64], k: [64], teraflops }],
    memory: list,
    reductions: [{ kernel: "reduction", dtype: "float", timings: list }],
    reductionsInPeers: list,
    localCopies: list,
    peerCopies: list,
    transfers: [{ type: "Allgather", ranks: 2, timings: list }],
  };
}

const measured = tables(timings, [1, 4], [64, 256]);
const bytes = 2048;
const asInterpolated = [{ bytes, microseconds: interpolatedTime(timings, bytes) }];
// In the middle, in logarithms, of 1 and 4.
const between = tables(asInterpolated, [2], [128]);

const { classes } = committedErrors;

it("are less than those of other machines where all times are those in between", () => {
  const found = residualsOf(measured, between, 0);
  for (const of of ["gemms", "kernels", "copies", "transfers", "reductionsInPeers"] as const) {
    expect(found[of]).toBeGreaterThan(0);
    expect(found[of]).toBeLessThan(classes[of]);
  }
});

it("are the mean error of a class, whatever its sign, and of four sizes with the usual one", () => {
  const off = (factor: number): readonly Timing[] => [
    { bytes, microseconds: factor * interpolatedTime(timings, bytes) },
  ];
  const other = {
    ...between,
    products: [{ dtype: "float", m: [128], n: [64], k: [64], teraflops: [1] }],
    localCopies: off(1.2),
    peerCopies: off(1 / 1.2),
  } as const;
  const found = residualsOf(measured, other, 0);
  expect(found.gemms).toBeCloseTo((Math.log(2) + 4 * classes.gemms) / 5, 2);
  // Two lists.
  expect(found.copies).toBeCloseTo((2 * Math.log(1.2) + 4 * classes.copies) / 6, 3);
});

it("are those of the runs that were measured, not of the little that is left without an empty run", () => {
  const tiny: readonly Timing[] = [1024, 4096].map((size) => ({ bytes: size, microseconds: 0.01 }));
  const list = { ...measured, peerCopies: tiny };
  const found = residualsOf(list, { ...between, peerCopies: [{ bytes, microseconds: 0.5 }] }, 5);
  expect(found.copies).toBeCloseTo((Math.log(5.5 / 5.01) + 4 * classes.copies) / 6, 3);
  expect(found.copies).toBeLessThan(0.05);
});

it("come from sizes that the tables do not have, in parts for eight devices", () => {
  for (const sizes of Object.values(calibrationSizes)) {
    const others = sizesBetween(sizes);
    for (const axis of ["m", "n", "k", "bytes"] as const) {
      for (const size of others[axis]) {
        expect(sizes[axis]).not.toContain(size);
        expect(size).toBeGreaterThan(sizes[axis][0] ?? Infinity);
        expect(size).toBeLessThan(sizes[axis].at(-1) ?? 0);
        if (axis === "bytes") expect(size % (8 * 16)).toBe(0);
      }
    }
  }
});
