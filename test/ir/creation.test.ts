/** Ops without operands: their shapes and dtypes, their texts, and the calls that they refuse. */
import { describe, expect, it } from "vitest";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { add, full, iota, ones, sum, zeros } from "../../src/ir/api/ops.ts";
import { Tensor } from "../../src/numerics/tensor/host-tensor.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { diagnosticOf } from "./expect-diagnostic.ts";

/** The oracle's value of what `build` makes. */
function valueOf(build: (f: Fusion) => ReturnType<typeof zeros>): unknown {
  const f = new Fusion();
  f.output(build(f));
  const [value] = evaluateFusion(f.data(), []).outputs;
  if (value === undefined) throw new Error("an output");
  return Tensor.toArray(value);
}

describe("full", () => {
  it("has one value, rounded to its dtype", () => {
    expect(valueOf((f) => full(f, [2, 2], 0.5))).toEqual([
      [0.5, 0.5],
      [0.5, 0.5],
    ]);
    expect(valueOf((f) => full(f, [], 0.1, "half"))).toBe(0.0999755859375);
    expect(valueOf((f) => full(f, [1], 2n ** 63n - 1n, "int64"))).toEqual([2n ** 63n - 1n]);
    expect(valueOf((f) => full(f, [1], -0))).toEqual([-0]);
    expect(valueOf((f) => full(f, [2], -Infinity, "bfloat16"))).toEqual([-Infinity, -Infinity]);
    expect(valueOf((f) => ones(f, [2], "bool"))).toEqual([true, true]);
    expect(valueOf((f) => full(f, [1], false, "bool"))).toEqual([false]);
    expect(valueOf((f) => zeros(f, [0, 3]))).toEqual([]);
  });

  it("takes extents of tensors", () => {
    const f = new Fusion();
    const x = f.input([null, 4]);
    expect(String(zeros(f, [x.axis(1), x.extents[0] ?? 0]))).toMatch(/^T1_g_float\[iS\d+\{4\}, iS\d+\{i0\}\]$/u);
  });

  it("refuses values that the dtype does not have, and other first arguments", () => {
    const f = new Fusion();
    expect(diagnosticOf(() => full(f, [2], 0.5, "int"))).toMatchObject({ code: "bad-argument", found: "0.5" });
    expect(diagnosticOf(() => full(f, [2], 2 ** 31, "int"))).toMatchObject({ code: "bad-argument" });
    expect(diagnosticOf(() => full(f, [2], 2, "bool"))).toMatchObject({ code: "bad-argument", found: "2" });
    expect(diagnosticOf(() => full(f, [-1], 2))).toMatchObject({ code: "bad-extent" });
    expect(diagnosticOf(() => zeros(f, [new Fusion().input([3]).axis(0)]))).toMatchObject({ code: "foreign-tensor" });
    // @ts-expect-error -- a call from JavaScript
    expect(diagnosticOf(() => zeros([2], "int"))).toMatchObject({
      message: "the first argument of zeros is not a Fusion",
    });
    expect(f.data().tensors).toEqual([]);
  });
});

describe("iota", () => {
  it("counts in int64 or int, which wraps", () => {
    expect(valueOf((f) => iota(f, 3))).toEqual([0n, 1n, 2n]);
    expect(valueOf((f) => iota(f, 3, { start: 5, step: -4, dtype: "int" }))).toEqual([5, 1, -3]);
    expect(valueOf((f) => iota(f, 2, { start: 2 ** 31 - 1, dtype: "int" }))).toEqual([2 ** 31 - 1, -(2 ** 31)]);
    expect(valueOf((f) => sum(iota(f, 0), [0]))).toBe(0n);
  });

  it("refuses floats and fractions", () => {
    const f = new Fusion();
    expect(diagnosticOf(() => iota(f, 3, { dtype: "float" }))).toMatchObject({ code: "dtype-mismatch" });
    expect(diagnosticOf(() => iota(f, 3, { step: 0.5 }))).toMatchObject({ code: "bad-argument", found: "0.5" });
    expect(diagnosticOf(() => iota(f, 1.5))).toMatchObject({ code: "bad-extent" });
  });

  it("promotes as any tensor of its dtype", () => {
    const f = new Fusion();
    expect(add(iota(f, 3), f.input([3], "half")).dtype).toBe("half");
  });
});
