/** Ops that stretch, join, pad and cut axes: their shapes, and the calls that they refuse. */
import { describe, expect, it } from "vitest";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { broadcast, cat, chunk, expand, pad, repeatInterleave, slice, split, unsqueeze } from "../../src/ir/api/ops.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import { diagnosticOf } from "./expect-diagnostic.ts";

function tensor(shape: readonly (number | null)[], dtype?: DType): TensorView {
  return new Fusion().input(shape, dtype);
}

/** `T0[4, i2]`, without the numbers of axes. */
function text(view: TensorView): string {
  return String(view).replaceAll(/([ibr])S\d+/gu, "$1");
}

describe("expand", () => {
  it("stretches axes of extent 1 and keeps the others", () => {
    expect(text(expand(tensor([1, 3]), [4, 3]))).toBe("T1_g_float[i{4}, i{3}]");
    expect(text(expand(tensor([1, 3]), [4, -1]))).toBe("T1_g_float[i{4}, i{3}]");
    expect(text(expand(broadcast(tensor([null]), [true, false]), [2, -1]))).toBe("T2_g_float[i{2}, i{i0}]");
    expect(text(expand(broadcast(tensor([3]), [true, false]), [1, 3]))).toBe("T2_g_float[b{1}, i{3}]");
    expect(text(expand(tensor([1]), [0]))).toBe("T1_g_float[i{0}]");
  });

  it("takes extents of other tensors", () => {
    const f = new Fusion();
    const [x, y] = [f.input([1, null]), f.input([null])];
    expect(text(expand(x, [y.axis(0), -1]))).toBe("T2_g_float[i{i3}, i{i2}]");
  });

  it("refuses other extents", () => {
    expect(diagnosticOf(() => expand(tensor([2, 3]), [4, 3]))).toMatchObject({
      code: "shape-mismatch",
      message: "expand stretches axis 0, whose extent is not 1",
      found: "extent 4 for T0[2, 3]",
    });
    expect(diagnosticOf(() => expand(tensor([1, 3]), [3]))).toMatchObject({ code: "bad-argument" });
    expect(diagnosticOf(() => expand(tensor([1]), [-2]))).toMatchObject({ code: "bad-extent" });
  });
});

describe("unsqueeze", () => {
  it("adds an axis in front of another, or at the end", () => {
    const x = tensor([2, 3]);
    expect(text(unsqueeze(x, 0))).toBe("T1_g_float[b{1}, i{2}, i{3}]");
    expect(text(unsqueeze(x, 2))).toBe("T2_g_float[i{2}, i{3}, b{1}]");
    expect(text(unsqueeze(x, -2))).toBe("T3_g_float[i{2}, b{1}, i{3}]");
    expect(diagnosticOf(() => unsqueeze(x, 3))).toMatchObject({ code: "axis-out-of-range" });
  });
});

describe("slice with steps", () => {
  it("rounds the number of indices up", () => {
    expect(text(slice(tensor([7, 4]), [1, 0], [7, 4], [4, 1]))).toBe("T1_g_float[i{2}, i{4}]");
    expect(text(slice(tensor([null]), [0], [6], [2]))).toBe("T1_g_float[i{3}]");
    const x = tensor([null]);
    expect(text(slice(x, [1], [x.axis(0)], [2]))).toBe("T1_g_float[i{( ceilDiv(( i0 - 1 ), 2) )}]");
  });

  it("refuses other steps", () => {
    for (const steps of [[0], [1.5], [-1], [1, 1]]) {
      expect(diagnosticOf(() => slice(tensor([4]), [0], [4], steps))).toMatchObject({ code: "bad-argument" });
    }
  });
});

describe("cat", () => {
  it("adds the extents of one axis", () => {
    const f = new Fusion();
    const [x, y, z] = [f.input([2, null]), f.input([2, 3]), f.input([null, 4], "half")];
    expect(text(cat([x, y], -1))).toBe("T3_g_float[i{2}, i{( i2 + 3 )}]");
    expect(text(cat([y, z, y], 1))).toBe("T5_g_float[i{2}, i{10}]");
    expect(text(cat([z]))).toBe("T6_g___half[i{i5}, i{4}]");
  });

  it("refuses other extents that differ", () => {
    const f = new Fusion();
    const [x, y] = [f.input([2, 3]), f.input([3, 3])];
    expect(diagnosticOf(() => cat([x, y], 1))).toMatchObject({
      code: "shape-mismatch",
      message: "cat joins tensors that differ in another axis than 1",
      found: "T0[2, 3] and T1[3, 3]",
    });
    expect(diagnosticOf(() => cat([x, f.input([3])], 0))).toMatchObject({ code: "shape-mismatch" });
    expect(diagnosticOf(() => cat([x, y], 2))).toMatchObject({ code: "axis-out-of-range" });
    expect(diagnosticOf(() => cat([], 0))).toMatchObject({ code: "bad-argument" });
    expect(diagnosticOf(() => cat([f.input([])], 0))).toMatchObject({ code: "axis-out-of-range" });
  });
});

describe("pad", () => {
  it("adds and removes elements", () => {
    expect(
      text(
        pad(tensor([2, 3, null]), [
          [1, 2],
          [-1, 0],
          [0, -2],
        ]),
      ),
    ).toBe("T1_g_float[i{5}, i{2}, i{( i3 + -2 )}]");
    expect(
      text(
        pad(broadcast(tensor([2]), [true, false]), [
          [0, 0],
          [1, 0],
        ]),
      ),
    ).toBe("T2_g_float[b{1}, i{3}]");
  });

  it("refuses widths and values that do not fit", () => {
    const x = tensor([2, 3], "int");
    expect(diagnosticOf(() => pad(x, [[0, 0]]))).toMatchObject({
      code: "bad-argument",
      found: "[[0, 0]] for T0[2, 3]",
    });
    expect(
      diagnosticOf(() =>
        pad(x, [
          [0, 0],
          [0.5, 0],
        ]),
      ),
    ).toMatchObject({ code: "bad-argument" });
    expect(
      diagnosticOf(() =>
        pad(x, [
          [-1, -2],
          [0, 0],
        ]),
      ),
    ).toMatchObject({
      code: "shape-mismatch",
      message: "pad removes more elements than axis 0 has",
    });
    expect(
      diagnosticOf(() =>
        pad(
          x,
          [
            [0, 0],
            [0, 1],
          ],
          0.5,
        ),
      ),
    ).toMatchObject({ code: "bad-argument", found: "0.5" });
    expect(diagnosticOf(() => pad(tensor([1], "bool"), [[0, 1]], 2))).toMatchObject({ code: "bad-argument" });
  });
});

describe("parts", () => {
  const texts = (views: readonly TensorView[]): readonly string[] => views.map(text);

  it("chunk rounds up and may have fewer", () => {
    expect(texts(chunk(tensor([7, 2]), 3))).toEqual([
      "T1_g_float[i{3}, i{2}]",
      "T2_g_float[i{3}, i{2}]",
      "T3_g_float[i{1}, i{2}]",
    ]);
    expect(chunk(tensor([5]), 4)).toHaveLength(3);
    expect(texts(chunk(tensor([null]), 2))).toEqual([
      "T1_g_float[i{( ceilDiv(i0, 2) )}]",
      "T2_g_float[i{( i0 - ( ceilDiv(i0, 2) ) )}]",
    ]);
    expect(diagnosticOf(() => chunk(tensor([4]), 0))).toMatchObject({ code: "bad-argument" });
  });

  it("split takes one size or all", () => {
    expect(texts(split(tensor([2, 5]), 2, 1))).toEqual([
      "T1_g_float[i{2}, i{2}]",
      "T2_g_float[i{2}, i{2}]",
      "T3_g_float[i{2}, i{1}]",
    ]);
    expect(texts(split(tensor([5]), [1, 4]))).toEqual(["T1_g_float[i{1}]", "T2_g_float[i{4}]"]);
    expect(diagnosticOf(() => split(tensor([5]), [1, 3]))).toMatchObject({ code: "bad-argument" });
    expect(diagnosticOf(() => split(tensor([null]), 2))).toMatchObject({ code: "bad-argument" });
  });

  it("repeatInterleave repeats each index", () => {
    expect(text(repeatInterleave(tensor([null, 3]), 2, 0))).toBe("T3_g_float[i{( i0 * 2 )}, i{3}]");
    expect(text(repeatInterleave(tensor([4, 3]), 2, -1))).toBe("T3_g_float[i{4}, i{6}]");
  });
});
