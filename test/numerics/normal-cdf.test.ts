/** The normal distribution's function against values of 40-digit arithmetic. */
import { describe, expect, it } from "vitest";
import { normalCdf } from "../../src/numerics/scalar/emit-js.ts";

const values: readonly (readonly [number, number, number])[] = [
  // x, at x, at -x
  [0, 0.5, 0.5],
  [1e-300, 0.5, 0.5],
  [1e-10, 0.5000000000398942, 0.49999999996010575],
  [0.1, 0.539827837277029, 0.460172162722971],
  [0.5, 0.6914624612740131, 0.3085375387259869],
  [1, 0.8413447460685429, 0.15865525393145705],
  [1.7, 0.955434537241457, 0.04456546275854304],
  [2.5, 0.9937903346742238, 0.006209665325776135],
  [4, 0.9999683287581669, 3.1671241833119924e-5],
  [6, 0.9999999990134123, 9.86587645037698e-10],
  [8.2, 0.9999999999999999, 1.2019351542735859e-16],
  [9, 1, 1.1285884059538405e-19],
  [12.5, 1, 3.732564298877713e-36],
  [20, 1, 2.7536241186062337e-89],
  [30, 1, 4.906713927148187e-198],
  [37.5, 1, 4.605353009581955e-308],
];

/** The relative error that normal-cdf.ts states. */
const bound = 8 * 2 ** -53;

describe("normalCdf", () => {
  it.each(values)("at %d and its negative", (x, upper, lower) => {
    expect(Math.abs(normalCdf(x) - upper)).toBeLessThanOrEqual(upper * bound);
    expect(Math.abs(normalCdf(-x) - lower)).toBeLessThanOrEqual(lower * bound);
  });

  it("ends at 0 and 1, and passes NaN on", () => {
    expect([-Infinity, -1e308, -39, 39, 1e308, Infinity, NaN].map(normalCdf)).toEqual([0, 0, 0, 1, 1, 1, NaN]);
  });

  it("never falls", () => {
    let before = 0;
    for (let i = -4000; i <= 4000; i++) {
      const now = normalCdf(i / 100);
      // Neighbours may differ by rounding where the function is flat.
      expect(now).toBeGreaterThanOrEqual(before * (1 - 2 * bound));
      before = now;
    }
  });
});
