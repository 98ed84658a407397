/** Sums of products by lanes against plain loops, bit for bit. */
import { describe, expect, it } from "vitest";
import { createDots } from "../../src/oracle/dots/float-dots.ts";
import { contiguousRuns, dotRows, operandRunsOf } from "../../src/oracle/dots/operand-runs.ts";
import type { OracleValue } from "../../src/oracle/value.ts";
import { createRandom } from "../../src/support/random.ts";
import { at } from "../../src/support/invariant.ts";

type Errors = "none" | "left" | "both";

function operand(
  shape: readonly number[],
  seed: number,
  hasErrors: boolean,
  special: readonly number[] = [],
): OracleValue {
  const random = createRandom(seed);
  const length = shape.reduce((product, extent) => product * extent, 1);
  const elements = Float64Array.from({ length }, () => random.float() - 0.5);
  special.forEach((value, i) => (elements[(i * 7919) % length] = value));
  const bounds = Float64Array.from({ length }, () => (hasErrors ? random.float() * 1e-6 : 0));
  return { dtype: "float", shape, elements, bounds };
}

/** [.., M, K] by [.., K, N]. */
function dotsOf(a: OracleValue, b: OracleValue, shape: readonly number[]) {
  const last = a.shape.length - 1;
  const left = contiguousRuns(operandRunsOf(a, last, shape, (position) => position));
  const right = contiguousRuns(operandRunsOf(b, last - 1, shape, (position) => (position === last ? last : position)));
  return { left, right, rows: dotRows(left, right, shape) };
}

describe("large products", () => {
  const shapes = [
    { name: "one matrix", a: [37, 129], b: [129, 61], out: [37, 61] },
    { name: "a batch", a: [3, 40, 64], b: [3, 64, 20], out: [3, 40, 20] },
    { name: "one column", a: [2100, 64], b: [64, 1], out: [2100, 1] },
    { name: "one row", a: [1, 500], b: [500, 300], out: [1, 300] },
  ] as const;
  const cases = shapes.flatMap((shape) => (["none", "left", "both"] as const).map((errors) => ({ ...shape, errors })));
  it.each(cases)("$name, errors: $errors", ({ a, b, out, errors }: (typeof shapes)[number] & { errors: Errors }) => {
    const specials = errors === "none" ? [NaN, Infinity, -0, 5e-324] : [];
    const { left, right, rows } = dotsOf(
      operand(a, 1, errors !== "none", specials),
      operand(b, 2, errors === "both"),
      out,
    );
    const dots = createDots(left, right, rows);
    const [found, expected]: [number[], number[]] = [[], []];
    for (let row = 0; row < rows.x.length; row++) {
      const { start, sums, magnitudes, spreads } = dots.row(row);
      for (let column = 0; column < rows.count; column++) {
        const [x, y] = [at(rows.x, row), at(rows.y, row) + column * rows.step];
        let [sum, magnitude, spread] = [0, 0, 0];
        for (let k = 0; k < left.count; k++) {
          const [p, q] = [at(left.numbers, x + k), at(right.numbers, y + k)];
          const [u, v] = [at(left.value.bounds, x + k), at(right.value.bounds, y + k)];
          sum += p * q;
          magnitude += Math.abs(p * q);
          spread += errors === "both" ? (Math.abs(p) + u) * v + Math.abs(q) * u : Math.abs(q) * u;
        }
        const place = start + column;
        found.push(at(sums, place), at(magnitudes, place), at(spreads, place));
        expected.push(sum, magnitude, spread);
      }
    }
    expect(Float64Array.from(found)).toEqual(Float64Array.from(expected));
  });
});
