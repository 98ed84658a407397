/** Comparisons, choices, bits and powers: dtypes, edges, bounds, dumps and refusals; `where` in every kernel. */
import { DeviceMesh, Fusion, Tensor, type TensorView } from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import * as api from "../../src/ir/api/ops.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { at } from "../../src/support/invariant.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { diagnosticOf } from "./expect-diagnostic.ts";

/** The elements of an expression of one vector, by the oracle, and their bounds. */
function evaluate(build: (x: TensorView) => TensorView, values: readonly (number | bigint)[], dtype: DType = "float") {
  const f = new Fusion();
  f.output(build(f.input([values.length], dtype)));
  const { outputs, bounds } = evaluateFusion(f.data(), [Tensor.from(values, dtype)]);
  return { dtype: at(outputs, 0).dtype, values: Tensor.toArray(at(outputs, 0)), bounds: [...at(bounds, 0)] };
}

const { abs, add, cast, clamp, exp, isfinite, isinf, isnan, lt, mul, pow, swiglu, where } = api;

describe("comparisons", () => {
  it("give bool, and false with NaN but for ne", () => {
    const values = [1, -0, NaN, Infinity];
    const results = [api.eq, api.ne, lt, api.le, api.gt, api.ge].map((op) => evaluate((x) => op(x, 0), values));
    expect(results.map(({ dtype }) => dtype)).toEqual(Array.from({ length: 6 }, () => "bool"));
    expect(results.map((each) => each.values)).toEqual([
      [false, true, false, false],
      [true, false, true, true],
      [false, false, false, false],
      [false, true, false, false],
      [true, false, false, true],
      [true, true, false, true],
    ]);
    expect(results.every(({ bounds }) => bounds.every((bound) => bound === 0))).toBe(true);
  });

  it("promote their operands, and are uncertain where inexact operands may be equal", () => {
    expect(evaluate((x) => lt(x, 0.5), [0n, 1n], "int64").values).toEqual([true, false]);
    expect(evaluate((x) => api.eq(x, 1), [0, 1], "bool").values).toEqual([false, true]);
    const { values, bounds } = evaluate((x) => lt(exp(x), 1.0000001), [-1, 0, 1]);
    expect(values).toEqual([true, true, false]);
    expect(bounds).toEqual([0, 1, 0]);
  });
});

describe("where", () => {
  it("takes one value and ignores the other, whose NaN does not leak", () => {
    const { values, bounds } = evaluate((x) => where(lt(x, 1), 0, api.log(x)), [0.5, 1, NaN, -1]);
    expect(values).toEqual([0, 0, NaN, 0]);
    expect(bounds.slice(0, 1)).toEqual([0]);
    expect(evaluate((x) => where(isnan(x), 1, 0), [NaN, 3])).toMatchObject({ dtype: "int64", values: [1n, 0n] });
    expect(evaluate((x) => where(isnan(x), 0, -Infinity), [NaN, 3])).toMatchObject({
      dtype: "float",
      values: [0, -Infinity],
    });
  });

  it("may take either value where the condition is uncertain", () => {
    const { bounds } = evaluate((x) => where(lt(exp(x), 1.0000001), x, 5), [-1, 0, 1]);
    expect(bounds).toEqual([0, 5, 0]);
  });

  it("stretches the condition and the values, and casts the values to one dtype", () => {
    const f = new Fusion();
    const [c, a, b] = [f.input([3, 1], "bool"), f.input([1, 4], "int"), f.input([], "double")];
    const y = where(c, a, b);
    expect([y.dtype, y.extents.length]).toEqual(["double", 2]);
    expect(where(c, a, 0.5).dtype).toBe("float");
    expect(where(c, 2, a).dtype).toBe("int");
  });

  it("refuses other conditions and shapes, before it appends anything", () => {
    const f = new Fusion();
    const [c, x, y] = [f.input([3], "bool"), f.input([3]), f.input([4])];
    expect(diagnosticOf(() => where(x, x, 0))).toMatchObject({
      code: "dtype-mismatch",
      message: "where of a tensor that is not bool",
      place: { text: "where(T1, T1, 0)" },
    });
    expect(diagnosticOf(() => where(c, 1, y))).toMatchObject({ code: "shape-mismatch" });
    expect(diagnosticOf(() => where(c, cast(x, "int"), 2 ** 31))).toMatchObject({ code: "bad-argument" });
    expect(diagnosticOf(() => api.bitAnd(x, 1))).toMatchObject({
      message: "bitAnd of a tensor that is not of integers",
    });
    expect(diagnosticOf(() => api.logicalXor(c, x))).toMatchObject({
      message: "logicalXor of a tensor that is not bool",
    });
    expect(f.data().ops.map(({ kind }) => kind)).toEqual(["Cast"]);
  });
});

it("clamp keeps NaN, and gives the upper limit if the limits cross", () => {
  expect(evaluate((x) => clamp(x, -1, 2), [-3, 0.5, 7, NaN]).values).toEqual([-1, 0.5, 2, NaN]);
  expect(evaluate((x) => clamp(x, 3, 1), [0, 9]).values).toEqual([1, 1]);
  expect(evaluate((x) => clamp(x, null, 2), [-3, 7]).values).toEqual([-3, 2]);
});

it("isnan, isinf and isfinite tell infinities and NaN", () => {
  const values = [1, NaN, Infinity, -Infinity];
  expect([isnan, isinf, isfinite].map((test) => evaluate(test, values, "half").values)).toEqual([
    [false, true, false, false],
    [false, false, true, true],
    [true, false, false, false],
  ]);
  expect([isnan, isinf, isfinite].map((test) => evaluate(test, [5], "int").values)).toEqual([[false], [false], [true]]);
});

describe("pow", () => {
  it("has C's results at 0, 1, NaN and infinities", () => {
    const cases = [
      [0, 0, 1],
      [1, NaN, 1],
      [NaN, 0, 1],
      [-8, 1 / 3, NaN],
      [-1, Infinity, 1],
      [-2, 3, -8],
      [0, -1, Infinity],
      [-0, -3, -Infinity],
    ];
    const f = new Fusion();
    f.output(pow(f.input([8]), f.input([8])));
    const columns = [0, 1].map((i) => Tensor.from(cases.map((row) => at(row, i))));
    expect(Tensor.toArray(at(evaluateFusion(f.data(), columns).outputs, 0))).toEqual(cases.map((row) => row[2]));
  });

  it("by numbers makes products and roots, and keeps integers", () => {
    const opsOf = (exponent: number, dtype: DType): readonly (string | undefined)[] => {
      const f = new Fusion();
      pow(f.input([2], dtype), exponent);
      return f.data().ops.map((op) => ("op" in op ? op.op : op.kind));
    };
    expect([2, 3, -1, 0.5, -0.5, 2.5].map((exponent) => opsOf(exponent, "float"))).toEqual([
      ["mul"],
      ["mul", "mul"],
      ["div"],
      ["sqrt"],
      ["rsqrt"],
      ["pow"],
    ]);
    expect(evaluate((x) => pow(x, 5), [3, -2], "int")).toMatchObject({ dtype: "int", values: [243, -32] });
    expect(evaluate((x) => pow(x, 0), [3, 0], "int").values).toEqual([1, 1]);
    expect(evaluate((x) => pow(x, -2), [4], "int")).toMatchObject({ dtype: "float", values: [0.0625] });
    expect(evaluate((x) => pow(2, x), [3], "int")).toMatchObject({ dtype: "float", values: [8] });
  });

  it("moves no further than the oracle's bound says", () => {
    const { bounds } = evaluate((x) => pow(exp(x), 2.5), [0]);
    expect(at(bounds, 0)).toBeGreaterThan(2.5 * 4 * 2 ** -24);
    expect(at(bounds, 0)).toBeLessThan(40 * 2 ** -24);
  });
});

it("remainder has the sign of the divisor", () => {
  const f = new Fusion();
  const [x, y] = [f.input([6], "int"), f.input([6], "int")];
  f.output(api.remainder(x, y));
  const inputs = [
    [7, -7, 7, -7, 5, -(2 ** 31)],
    [3, 3, -3, -3, 0, -1],
  ].map((values) => Tensor.from(values, "int"));
  expect(Tensor.toArray(at(evaluateFusion(f.data(), inputs).outputs, 0))).toEqual([1, 2, -2, -1, 0, 0]);
});

it("run on every back end, sharded and in a unit", async () => {
  const f = new Fusion();
  const [x, y] = [f.input([2, 3, 4]), f.input([2, 3, 4], "int")];
  const isLess = lt(x, api.sub(0.5, cast(y, "float")));
  const chosen = where(isLess, swiglu(x, add(x, 1)), -0.5);
  const bits = api.bitXor(api.shiftLeft(y, 3), api.remainder(y, 5));
  const both = api.logicalAnd(isLess, api.logicalNot(isfinite(mul(x, abs(x)))));
  const outputs = [chosen, bits, both, where(both, bits, 7), pow(add(abs(x), 1), 1.5), clamp(y, -2, 2)];
  for (const output of outputs) f.output(output);
  for (const tv of [x, y]) tv.setDeviceMesh(DeviceMesh.range(2)).axis(0).parallelize("DIDx");
  // silu and the power round.
  await expectOracle(f, { devices: 2, rounds: true });
});
