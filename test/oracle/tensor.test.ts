/** Tensors as values: from nested arrays and back, and seeded random ones. */
import { describe, expect, it } from "vitest";
import type { DType } from "../../src/numerics/dtype.ts";
import {
  emptyTensor,
  isTensor,
  type NestedValues,
  Tensor,
  tensorBytes,
} from "../../src/numerics/tensor/host-tensor.ts";
import { type RandomMode, randomInputs, randomTensor } from "../../src/oracle/random-inputs.ts";
import { createRandom } from "../../src/support/random.ts";
import { diagnosticOf } from "../ir/expect-diagnostic.ts";

const dtypes = ["double", "float", "half", "bfloat16", "int", "int64", "bool"] as const satisfies readonly DType[];

describe("Tensor.from", () => {
  it.each([
    ["double", [0.1, -2], [0.1, -2]],
    ["float", [0.1, -2], [Math.fround(0.1), -2]],
    ["half", [1 + 2 ** -12, 70000], [1, Infinity]],
    ["bfloat16", [1 + 2 ** -9, 3], [1, 3]],
    ["int", [-(2 ** 31), 2 ** 31 - 1], [-(2 ** 31), 2 ** 31 - 1]],
    ["int64", [1, -(2n ** 63n)], [1n, -(2n ** 63n)]],
    ["bool", [true, 0], [true, false]],
  ] as const)("takes and gives back %s", (dtype, values, expected) => {
    const tensor = Tensor.from(values, dtype);
    expect(tensor.dtype).toBe(dtype);
    expect(tensor.shape).toEqual([2]);
    expect(Tensor.toArray(tensor)).toEqual(expected);
    expect(isTensor(tensor)).toBe(true);
  });

  it("nests any number of axes", () => {
    const values = [
      [
        [1, 2, 3],
        [4, 5, 6],
      ],
    ];
    const tensor = Tensor.from(values);
    expect(tensor.shape).toEqual([1, 2, 3]);
    expect(Tensor.values(tensor)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(Tensor.toArray(tensor)).toEqual(values);
    expect(Tensor.from(7)).toEqual({ dtype: "float", shape: [], data: Float32Array.of(7) });
    expect(Tensor.toArray(Tensor.from(7))).toBe(7);
  });

  it.each([
    ["shape-mismatch", [[1, 2], [3]], "float"],
    ["shape-mismatch", [1, [2]], "float"],
    ["shape-mismatch", [[1], 2], "float"],
    ["bad-extent", [], "float"],
    ["bad-extent", [[]], "float"],
    ["bad-argument", [1.5], "int"],
    ["bad-argument", [2 ** 31], "int"],
    ["bad-argument", [1n], "int"],
    ["bad-argument", [1.5], "int64"],
    ["bad-argument", [2n ** 63n], "int64"],
    ["bad-argument", [true], "int64"],
    ["bad-argument", [2], "bool"],
    ["bad-argument", [1n], "float"],
    ["bad-argument", [false], "half"],
  ] as const satisfies readonly (readonly [string, NestedValues, DType])[])("%s, case %#", (code, values, dtype) => {
    const diagnostic = diagnosticOf(() => Tensor.from(values, dtype));
    expect(diagnostic.code).toBe(code);
    expect(diagnostic.help).toBeTruthy();
  });
});

describe("tensors", () => {
  it("are zero when made empty, with bytes that write through", () => {
    for (const dtype of dtypes) {
      const tensor = emptyTensor(dtype, [2, 3]);
      expect(isTensor(tensor)).toBe(true);
      expect(Tensor.values(tensor).every((value) => Number(value) === 0)).toBe(true);
    }
    const tensor = Tensor.zeros([2], "half");
    tensorBytes(tensor).set([0x00, 0x3c], 2);
    expect(Tensor.toArray(tensor)).toEqual([0, 1]);
    const view = { ...tensor, data: new Uint16Array(tensor.data.buffer, 2, 1) };
    expect(tensorBytes({ dtype: "half", shape: [1], data: view.data })).toEqual(Uint8Array.of(0x00, 0x3c));
  });

  it("are recognised by dtype, storage and shape", () => {
    const bad: readonly unknown[] = [
      null,
      7,
      [],
      { dtype: "float", shape: [2] },
      { dtype: "fp8", shape: [2], data: new Float32Array(2) },
      { dtype: "float", shape: [2], data: new Float64Array(1) },
      { dtype: "float", shape: [2], data: new Float32Array(3) },
      { dtype: "float", shape: ["2"], data: new Float32Array(2) },
      { dtype: "float", shape: 2, data: new Float32Array(2) },
      { dtype: "half", shape: [2], data: new Int16Array(2) },
    ];
    for (const value of bad) expect(isTensor(value)).toBe(false);
  });
});

describe("random inputs", () => {
  const shapes = dtypes.map((dtype) => ({ dtype, shape: [10, 20] }));
  const draw = (seed: number, mode: RandomMode): readonly Tensor[] => randomInputs(shapes, createRandom(seed), mode);

  it("repeat with the seed, and differ without", () => {
    expect(draw(5, "uniform")).toEqual(draw(5, "uniform"));
    expect(draw(5, "uniform")).not.toEqual(draw(6, "uniform"));
  });

  it("lie in [-1, 1] for floats, spread over both signs, and in [-8, 8] for integers", () => {
    for (const tensor of draw(1, "uniform")) {
      const values = Tensor.values(tensor).map(Number);
      const limit = tensor.dtype === "int" || tensor.dtype === "int64" ? 8 : 1;
      expect(Math.max(...values)).toBeLessThanOrEqual(limit);
      expect(Math.min(...values)).toBeGreaterThanOrEqual(-limit);
      expect(new Set(values).size).toBeGreaterThanOrEqual(tensor.dtype === "bool" ? 2 : 15);
      if (tensor.dtype === "float") expect(values.some((value) => value < -0.5)).toBe(true);
    }
  });

  it("are whole numbers in small-integers mode", () => {
    for (const tensor of draw(2, "small-integers")) {
      const values = Tensor.values(tensor).map(Number);
      expect(values.every((value) => Number.isInteger(value) && Math.abs(value) <= 8)).toBe(true);
      if (tensor.dtype !== "bool") expect(new Set(values).size).toBe(17);
    }
  });

  it("make scalars", () => {
    expect(randomTensor({ dtype: "int64", shape: [] }, createRandom(1), "uniform").data).toHaveLength(1);
  });

  it("have the edges of every dtype in mode special, and leave most elements ordinary", () => {
    const special = (dtype: DType, shape: readonly number[]): readonly (number | bigint)[] =>
      Tensor.values(randomTensor({ dtype, shape }, createRandom(3), "special"));
    for (const dtype of ["double", "float", "half", "bfloat16"] as const) {
      const values = special(dtype, [40, 50]).map(Number);
      for (const wanted of [-0, NaN, Infinity, -Infinity]) expect(values.some((x) => Object.is(x, wanted))).toBe(true);
      const normal = dtype === "double" ? 2 ** -1022 : dtype === "half" ? 2 ** -14 : 2 ** -126;
      expect(values.some((x) => x !== 0 && Math.abs(x) < normal)).toBe(true);
      expect(values.some((x) => Number.isFinite(x) && Math.abs(x) > 32)).toBe(true);
      expect(values.filter((x) => !Number.isFinite(x)).length).toBeLessThanOrEqual(5);
      expect(values.filter((x) => x !== 0 && Math.abs(x) < 1 && Math.abs(x) > 2 ** -12).length).toBeGreaterThan(1500);
      expect(special(dtype, [7]).every((x) => Number.isFinite(Number(x)))).toBe(true);
    }
    expect(special("int", [200])).toContain(-(2 ** 31));
    expect(special("int64", [200])).toContain(2n ** 63n - 1n);
  });

  it("have few large integers in mode special, so that casts to half and their sums are mostly finite", () => {
    for (const dtype of ["int", "int64"] as const) {
      const rows = Tensor.values(randomTensor({ dtype, shape: [40, 50] }, createRandom(3), "special")).map(Number);
      expect(rows.filter((x) => Math.abs(x) > 64)).toHaveLength(3);
      expect(rows.filter((x) => Math.abs(x) === 64).length).toBeGreaterThan(50);
    }
  });
});
