/**
 * The definitions for float32 against the engine's functions in double: the largest errors in ulps of float32, over
 * samples that are dense where results are near each other, and over all exponents.
 */
import { describe, expect, it } from "vitest";
import type { UnaryOpType } from "../../src/ir/ops/op.ts";
import { erf, normalCdf } from "../../src/numerics/scalar/emit-js.ts";
import { createRandom } from "../../src/support/random.ts";
import { compileUnary } from "../kernels/compiled-expressions.ts";
import { runs } from "../support/suite.ts";

interface Case {
  readonly op: UnaryOpType;
  readonly exact: (x: number) => number;
  /** As float-functions.ts and docs/cpu.md say. */
  readonly ulps: number;
  /** Where a result is neither 0, 1, -1 nor infinite. */
  readonly from: number;
  readonly to: number;
  /** What ulps are of; the result if omitted. */
  readonly relative?: "operand";
}

const logistic = (x: number): number => (x < 0 ? Math.exp(x) / (1 + Math.exp(x)) : 1 / (1 + Math.exp(-x)));
const turn = 2 * Math.sqrt(2 / Math.PI);

const cases: readonly Case[] = [
  { op: "exp", exact: Math.exp, ulps: 1, from: -104, to: 88.72 },
  { op: "log", exact: Math.log, ulps: 0.9, from: 2 ** -149, to: 4 },
  { op: "tanh", exact: Math.tanh, ulps: 1.4, from: -9.1, to: 9.1 },
  { op: "exp2", exact: (x) => 2 ** x, ulps: 0.51, from: -149, to: 127.99 },
  { op: "expm1", exact: Math.expm1, ulps: 0.51, from: -17, to: 88.72 },
  { op: "log1p", exact: Math.log1p, ulps: 0.51, from: -1 + 2 ** -24, to: 2 ** 128 * (1 - 2 ** -24) },
  { op: "log1p", exact: Math.log1p, ulps: 0.51, from: -1 + 2 ** -24, to: 4 },
  { op: "erf", exact: erf, ulps: 0.51, from: -3.9, to: 3.9 },
  { op: "normalCdf", exact: normalCdf, ulps: 0.55, from: -14.2, to: 5.5 },
  { op: "sigmoid", exact: logistic, ulps: 2.2, from: -104, to: 17 },
  { op: "silu", exact: (x) => x * logistic(x), ulps: 4.1, from: -108, to: 17 },
  { op: "softplus", exact: (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x))), ulps: 0.51, from: -104, to: 20 },
  { op: "gelu", exact: (x) => x * normalCdf(x), ulps: 3.3, from: -14.2, to: 5.5, relative: "operand" },
  {
    op: "geluTanh",
    exact: (x) => x * logistic(turn * (x + 0.044715 * x ** 3)),
    ulps: 2,
    from: -10,
    to: 10,
    relative: "operand",
  },
];

function ulpOf(x: number): number {
  const exponent = Math.floor(Math.log2(Math.abs(x)));
  return 2 ** (Math.max(-126, Number.isFinite(exponent) ? exponent : -126) - 23);
}

describe.each(cases)("$op in float", ({ op, exact, ulps, from, to, relative }) => {
  it(`is within ${ulps} ulps`, () => {
    const apply = compileUnary(op, "float");
    const random = createRandom(7);
    const count = runs({ quick: 40_000, long: 2_000_000 });
    let worst = { error: 0, x: 0 };
    for (let i = 0; i < count; i++) {
      const spread = Math.fround(from + (to - from) * ((i + random.float()) / count));
      const sign = from < 0 && random.integer(2) === 0 ? -1 : 1;
      const scaled = Math.fround(sign * 2 ** (random.float() * 156 - 149));
      for (const x of [spread, scaled]) {
        if (x < from || x > to) continue;
        const y = exact(x);
        const error = Math.abs(Number(apply(x)) - y) / ulpOf(relative === "operand" ? x : y);
        if (!(error <= worst.error)) worst = { error, x };
      }
    }
    expect(worst.error, `at ${worst.x}`).toBeLessThanOrEqual(ulps);
    // The bound says something.
    expect(worst.error).toBeGreaterThan(0.5 * ulps);
  });
});

it("exp overflows and underflows where its result does", () => {
  const exp = compileUnary("exp", "float");
  const [largest, smallest] = [Math.fround(88.72283), Math.fround(-103.97208)];
  expect(Number.isFinite(Number(exp(largest)))).toBe(true);
  expect(exp(Math.fround(88.72284))).toBe(Infinity);
  expect(exp(smallest)).toBe(2 ** -149);
  expect(exp(Math.fround(-103.97209))).toBe(0);
});
