/** Ops that read and add at indices: their shapes and dtypes, and the calls that they refuse. */
import { describe, expect, it } from "vitest";
import { Fusion } from "../../src/ir/api/fusion.ts";
import {
  cast,
  crossEntropy,
  embedding,
  expand,
  gather,
  indexSelect,
  iota,
  lt,
  scatterAdd,
  unsqueeze,
  where,
} from "../../src/ir/api/ops.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import { indexLimits } from "../../src/ir/runs.ts";
import { diagnosticOf } from "./expect-diagnostic.ts";

/** `T0_g_float[i{4}, i{i2}]`: without the numbers of axes. */
function text(view: TensorView): string {
  return String(view).replaceAll(/([ibr])S\d+/gu, "$1");
}

describe("indexSelect", () => {
  it("puts the axes of the indices in place of the axis", () => {
    const f = new Fusion();
    const [table, index] = [f.input([7, null], "half"), f.input([2, 3], "int64")];
    expect(text(embedding(table, index))).toBe("T2_g___half[i{2}, i{3}, i{i2}]");
    expect(text(indexSelect(table, -1, index))).toBe("T3_g___half[i{7}, i{2}, i{3}]");
    expect(text(indexSelect(table, 0, f.input([], "int")))).toBe("T5_g___half[i{i2}]");
  });

  it("refuses indices that are not integers", () => {
    const f = new Fusion();
    expect(diagnosticOf(() => embedding(f.input([7, 4]), f.input([3])))).toMatchObject({
      code: "dtype-mismatch",
      message: "indices are not integers",
      found: "T1 float",
    });
    expect(diagnosticOf(() => embedding(f.input([]), f.input([3], "int")))).toMatchObject({
      code: "axis-out-of-range",
    });
  });
});

describe("gather and scatterAdd", () => {
  it("have the shape of the indices, and of the tensor", () => {
    const f = new Fusion();
    const [x, index, source] = [f.input([6, 7], "half"), f.input([6, 2], "int"), f.input([6, 2])];
    expect(text(gather(x, 1, index))).toBe("T3_g___half[i{6}, i{2}]");
    expect(text(scatterAdd(x, 1, index, source))).toMatch(/_g_float\[i\{6\}, i\{7\}\]$/u);
    expect(scatterAdd(x, 1, index, f.input([6, 2], "half")).dtype).toBe("half");
  });

  it("refuse other shapes", () => {
    const f = new Fusion();
    const [x, index] = [f.input([6, 7]), f.input([5, 2], "int")];
    expect(diagnosticOf(() => gather(x, 1, index))).toMatchObject({
      code: "shape-mismatch",
      message: "indices differ in another axis than 1",
      found: "T0[6, 7] and T1[5, 2]",
    });
    expect(diagnosticOf(() => scatterAdd(x, 0, f.input([5, 7], "int"), f.input([4, 7])))).toMatchObject({
      code: "shape-mismatch",
      message: "indices and source differ in shape",
    });
  });
});

it("indices do not reach classes that a mask leaves out, as padding", () => {
  const limitsOf = (masked: (f: Fusion, logits: TensorView) => TensorView): ReadonlyMap<number, number> => {
    const f = new Fusion();
    const [logits, target] = [f.input([6, 12]), f.input([6], "int64")];
    f.output(crossEntropy(masked(f, logits), target));
    return indexLimits(f.data(), new Map());
  };
  const isClass = (f: Fusion, axis: number): TensorView => unsqueeze(lt(iota(f, axis === 0 ? 12 : 6), 4), axis);
  expect(limitsOf((_, logits) => logits)).toEqual(new Map([[1, 12]]));
  expect(limitsOf((f, logits) => where(isClass(f, 0), logits, -Infinity))).toEqual(new Map([[1, 4]]));
  // A mask of rows.
  expect(limitsOf((f, logits) => where(isClass(f, 1), logits, -Infinity))).toEqual(new Map([[1, 12]]));
});

it("indices among the inputs are known through views and casts", () => {
  const f = new Fusion();
  const [table, index, other] = [f.input([null, 4]), f.input([6], "int64"), f.input([3], "int64")];
  const chosen = indexSelect(index, 0, other);
  f.output(embedding(table, chosen));
  f.output(indexSelect(f.input([9]), 0, chosen));
  expect(indexLimits(f.data(), new Map([["i0", 5]]))).toEqual(new Map([[2, 6]]));
  const g = new Fusion();
  const [rows, ids] = [g.input([5, 4]), g.input([6], "int")];
  g.output(gather(rows, 0, cast(expand(unsqueeze(ids, 1), [-1, 4]), "int64")));
  expect(indexLimits(g.data(), new Map())).toEqual(new Map([[1, 5]]));
});
