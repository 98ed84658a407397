/** The oracle's results against values worked out by hand. */
import { describe, expect, it } from "vitest";
import { Fusion } from "../../src/ir/api/fusion.ts";
import {
  abs,
  add,
  amax,
  amin,
  broadcast,
  cast,
  cat,
  chunk,
  div,
  embedding,
  exp,
  expand,
  gather,
  gelu,
  indexSelect,
  linear,
  matmul,
  mul,
  neg,
  pad,
  permute,
  prod,
  relu,
  repeatInterleave,
  reshape,
  scatterAdd,
  select,
  set,
  slice,
  squeeze,
  sub,
  sum,
  unsqueeze,
} from "../../src/ir/api/ops.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import { type NestedValues, Tensor } from "../../src/numerics/tensor/host-tensor.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { at } from "../../src/support/invariant.ts";
import { diagnosticOf } from "../ir/expect-diagnostic.ts";

type Input = readonly [NestedValues, DType?];

/** Evaluates `build` over inputs of the given values; symbolic extents, so that the sizes come from the tensors. */
function evaluate(build: (...tensors: TensorView[]) => TensorView, ...inputs: readonly Input[]): NestedValues {
  return Tensor.toArray(resultOf(build, ...inputs).output);
}

function resultOf(
  build: (...tensors: TensorView[]) => TensorView,
  ...inputs: readonly Input[]
): { output: Tensor; bounds: readonly number[] } {
  const f = new Fusion();
  const tensors = inputs.map(([values, dtype = "float"]) => Tensor.from(values, dtype));
  f.output(
    build(
      ...tensors.map(({ shape, dtype }) =>
        f.input(
          shape.map((extent) => (extent === 1 ? 1 : null)),
          dtype,
        ),
      ),
    ),
  );
  const { outputs, bounds } = evaluateFusion(f.data(), tensors);
  return { output: at(outputs, 0), bounds: [...at(bounds, 0)] };
}

const one =
  (call: (x: TensorView) => TensorView) =>
  (...operands: TensorView[]): TensorView =>
    call(at(operands, 0));
const two =
  (call: (x: TensorView, y: TensorView) => TensorView) =>
  (...operands: TensorView[]): TensorView =>
    call(at(operands, 0), at(operands, 1));
const three =
  (call: (x: TensorView, y: TensorView, z: TensorView) => TensorView) =>
  (...operands: TensorView[]): TensorView =>
    call(at(operands, 0), at(operands, 1), at(operands, 2));

describe("shapes", () => {
  const x: Input = [
    [
      [1, 2, 3],
      [4, 5, 6],
    ],
  ];

  it("slice with steps, and parts", () => {
    expect(
      evaluate(
        one((t) => slice(t, [0, 0], [2, 3], [1, 2])),
        x,
      ),
    ).toEqual([
      [1, 3],
      [4, 6],
    ]);
    expect(
      evaluate(
        one((t) => slice(t, [1, 1], [2, 3], [3, 1])),
        x,
      ),
    ).toEqual([[5, 6]]);
    expect(
      evaluate(
        one((t) => at(chunk(t, 2, 1), 1)),
        x,
      ),
    ).toEqual([[3], [6]]);
  });

  it("cat and pad", () => {
    expect(
      evaluate(
        two((a, b) => cat([a, b, a], 1)),
        [[[1], [2]]],
        [
          [
            [3, 4],
            [5, 6],
          ],
        ],
      ),
    ).toEqual([
      [1, 3, 4, 1],
      [2, 5, 6, 2],
    ]);
    expect(
      evaluate(
        one((t) =>
          pad(
            t,
            [
              [0, 1],
              [1, -1],
            ],
            -7,
          ),
        ),
        x,
      ),
    ).toEqual([
      [-7, 1, 2],
      [-7, 4, 5],
      [-7, -7, -7],
    ]);
    expect(
      evaluate(
        one((t) => pad(t, [[1, 0]], 0.1)),
        [[1], "half"],
      ),
    ).toEqual([0.0999755859375, 1]);
  });

  it("expand and repeatInterleave", () => {
    expect(
      evaluate(
        one((t) => expand(unsqueeze(t, 1), [-1, 2])),
        [[1, 2]],
      ),
    ).toEqual([
      [1, 1],
      [2, 2],
    ]);
    expect(
      evaluate(
        one((t) => repeatInterleave(t, 2, 0)),
        [[1, 2]],
      ),
    ).toEqual([1, 1, 2, 2]);
  });
});

describe("indices", () => {
  it("read 0 outside of the axis, and are reported", () => {
    const table: Input = [
      [
        [1, 2],
        [3, 4],
        [5, 6],
      ],
    ];
    expect(evaluate(two(embedding), table, [[2, 0, -1, 3], "int64"])).toEqual([
      [5, 6],
      [1, 2],
      [0, 0],
      [0, 0],
    ]);
    expect(
      evaluate(
        two((t, i) => indexSelect(t, 1, i)),
        table,
        [[1], "int"],
      ),
    ).toEqual([[2], [4], [6]]);
    expect(
      evaluate(
        two((t, i) => gather(t, 1, i)),
        table,
        [[[1], [0], [2]], "int"],
      ),
    ).toEqual([[2], [3], [0]]);
    const f = new Fusion();
    const [t, i] = [f.input([3, 2]), f.input([4], "int64")];
    f.output(neg(embedding(t, i)));
    f.output(neg(t));
    const inputs = [Tensor.from(table[0], "float"), Tensor.from([2, 0, -1, 3], "int64")];
    expect(evaluateFusion(f.data(), inputs).outside).toEqual([
      "T2 (indexselect of T0, T1): 2 of 4 indices are outside of 0 .. 2",
      null,
    ]);
  });

  it("add in order, with one rounding", () => {
    const added = three((t, i, s) => scatterAdd(t, 0, i, s));
    expect(evaluate(added, [[10, 20]], [[1, 1, 0, 2, -1], "int64"], [[1, 2, 3, 4, 5]])).toEqual([13, 23]);
    expect(evaluate(added, [[10, 20], "int"], [[0, 0], "int"], [[1, 2], "int"])).toEqual([13, 20]);
    // 2048 + 1 + 1 in half rounds back to 2048 twice.
    expect(evaluate(added, [[2048], "half"], [[0, 0], "int"], [[1, 1], "half"])).toEqual([2050]);
  });
});

describe("pointwise", () => {
  it("unary", () => {
    const x: Input = [[-2, -0.5, 0, 3]];
    expect(evaluate(one(neg), x)).toEqual([2, 0.5, -0, -3]);
    expect(evaluate(one(abs), x)).toEqual([2, 0.5, 0, 3]);
    expect(evaluate(one(relu), x)).toEqual([0, 0, 0, 3]);
    expect(evaluate(one(exp), x)).toEqual([-2, -0.5, 0, 3].map((v) => Math.fround(Math.exp(v))));
    // The normal distribution's cumulative function at -2, -0.5 and 3, from tables.
    const output = resultOf(one(gelu), x).output;
    const expected = [-2 * 0.0227501319, -0.5 * 0.3085375387, 0, 3 * 0.9986501019];
    expected.forEach((value, i) => expect(at(Tensor.values(output), i)).toBeCloseTo(value, 6));
  });

  it("binary, with broadcasting", () => {
    expect(evaluate(two(add), [[[1], [2]]], [[[10, 20]]])).toEqual([
      [11, 21],
      [12, 22],
    ]);
    expect(evaluate(two(sub), [[1, 2]], [[5, 7]])).toEqual([-4, -5]);
    expect(evaluate(two(mul), [[3, 4]], [[5, -1]])).toEqual([15, -4]);
    expect(evaluate(two(div), [[1, -1, 0]], [[4, 0, 0]])).toEqual([0.25, -Infinity, NaN]);
    expect(
      evaluate(
        two((x, y) => mul(broadcast(x, [false, true]), broadcast(y, [true, false]))),
        [[2, 3]],
        [[5, 7]],
      ),
    ).toEqual([
      [10, 14],
      [15, 21],
    ]);
  });

  it("integers wrap, divide toward zero and by zero to zero", () => {
    const big = 2 ** 31 - 1;
    expect(evaluate(two(add), [[big], "int"], [[1], "int"])).toEqual([-(2 ** 31)]);
    expect(evaluate(two(mul), [[65536], "int"], [[65537], "int"])).toEqual([65536]);
    expect(evaluate(two(div), [[7, -7, 7], "int"], [[2, 2, 0], "int"])).toEqual([3, -3, 0]);
    expect(evaluate(two(add), [[2n ** 63n - 1n], "int64"], [[1n], "int64"])).toEqual([-(2n ** 63n)]);
    expect(evaluate(two(div), [[-7n, 7n], "int64"], [[2n, 0n], "int64"])).toEqual([-3n, 0n]);
  });

  it("rounds to the dtype after every op", () => {
    expect(evaluate(two(add), [[2048], "half"], [[1], "half"])).toEqual([2048]);
    expect(evaluate(two(add), [[256], "bfloat16"], [[1], "bfloat16"])).toEqual([256]);
    expect(evaluate(two(add), [[2 ** 24], "float"], [[1], "float"])).toEqual([2 ** 24]);
    expect(evaluate(two(add), [[2 ** 24], "double"], [[1], "double"])).toEqual([2 ** 24 + 1]);
    expect(
      evaluate(
        two((x, y) => sub(add(x, y), x)),
        [[2048], "half"],
        [[1], "half"],
      ),
    ).toEqual([0]);
  });

  it("casts", () => {
    expect(
      evaluate(
        one((x) => cast(x, "int")),
        [[1.9, -1.9, 1e20, NaN]],
      ),
    ).toEqual([1, -1, 2 ** 31 - 1, 0]);
    expect(
      evaluate(
        one((x) => cast(x, "bool")),
        [[0, -3, 0.5]],
      ),
    ).toEqual([false, true, true]);
    expect(
      evaluate(
        one((x) => cast(x, "int64")),
        [[true, false], "bool"],
      ),
    ).toEqual([1n, 0n]);
    expect(
      evaluate(
        one((x) => cast(x, "half")),
        [[1 + 2 ** -12, 70000]],
      ),
    ).toEqual([1, Infinity]);
    expect(evaluate(two(add), [[1], "int"], [[0.5], "float"])).toEqual([1.5]);
  });
});

describe("reductions", () => {
  const x: Input = [
    [
      [1, 2, 3],
      [4, 5, -6],
    ],
  ];
  it("over some axes, or all", () => {
    expect(
      evaluate(
        one((t) => sum(t, [1])),
        x,
      ),
    ).toEqual([6, 3]);
    expect(
      evaluate(
        one((t) => sum(t, [0])),
        x,
      ),
    ).toEqual([5, 7, -3]);
    expect(
      evaluate(
        one((t) => sum(t, [0, 1])),
        x,
      ),
    ).toBe(9);
    expect(
      evaluate(
        one((t) => prod(t, [1])),
        x,
      ),
    ).toEqual([6, -120]);
    expect(
      evaluate(
        one((t) => amax(t, [0])),
        x,
      ),
    ).toEqual([4, 5, 3]);
    expect(
      evaluate(
        one((t) => amin(t, [0, 1])),
        x,
      ),
    ).toBe(-6);
    expect(
      evaluate(
        one((t) => sum(sum(t, [0]), [0])),
        x,
      ),
    ).toBe(9);
  });
  it("wrap, keep NaN, and reduce bool", () => {
    expect(
      evaluate(
        one((t) => sum(t, [0])),
        [[2 ** 31 - 1, 1, 1], "int"],
      ),
    ).toBe(-(2 ** 31) + 1);
    expect(
      evaluate(
        one((t) => prod(t, [0])),
        [[2n ** 40n, 2n ** 40n], "int64"],
      ),
    ).toBe(0n);
    expect(
      evaluate(
        one((t) => amax(t, [0])),
        [[1, NaN, 3]],
      ),
    ).toBeNaN();
    expect(
      evaluate(
        one((t) => amax(t, [0])),
        [[true, false], "bool"],
      ),
    ).toBe(true);
    expect(
      evaluate(
        one((t) => amin(t, [0])),
        [[true, false], "bool"],
      ),
    ).toBe(false);
  });
});

describe("rearranging", () => {
  const x: Input = [
    [
      [1, 2, 3],
      [4, 5, 6],
    ],
    "int",
  ];
  it("moves elements", () => {
    expect(evaluate(one(set), x)).toEqual(x[0]);
    expect(
      evaluate(
        one((t) => permute(t, [1, 0])),
        x,
      ),
    ).toEqual([
      [1, 4],
      [2, 5],
      [3, 6],
    ]);
    expect(
      evaluate(
        one((t) => reshape(t, [3, 2])),
        x,
      ),
    ).toEqual([
      [1, 2],
      [3, 4],
      [5, 6],
    ]);
    expect(
      evaluate(
        one((t) => reshape(permute(t, [1, 0]), [-1])),
        x,
      ),
    ).toEqual([1, 4, 2, 5, 3, 6]);
    expect(
      evaluate(
        one((t) => slice(t, [0, 1], [2, 3])),
        x,
      ),
    ).toEqual([
      [2, 3],
      [5, 6],
    ]);
    expect(
      evaluate(
        one((t) => select(t, 0, -1)),
        x,
      ),
    ).toEqual([4, 5, 6]);
    expect(
      evaluate(
        one((t) => select(t, 1, 1)),
        x,
      ),
    ).toEqual([2, 5]);
    expect(
      evaluate(
        one((t) => broadcast(t, [true, false, true, false])),
        x,
      ),
    ).toEqual([[[[1, 2, 3]], [[4, 5, 6]]]]);
    expect(
      evaluate(
        one((t) => squeeze(t, [0, 2])),
        [[[[1], [2]]], "int"],
      ),
    ).toEqual([1, 2]);
  });
});

describe("contractions", () => {
  const a: Input = [
    [
      [1, 2],
      [3, 4],
    ],
  ];
  const b: Input = [
    [
      [5, 6, 7],
      [8, 9, 10],
    ],
  ];
  const ab = [
    [21, 24, 27],
    [47, 54, 61],
  ];
  it("matmul of all ranks", () => {
    expect(evaluate(two(matmul), a, b)).toEqual(ab);
    expect(evaluate(two(matmul), [[1, 2]], b)).toEqual([21, 24, 27]);
    expect(evaluate(two(matmul), a, [[5, 8]])).toEqual([21, 47]);
    expect(evaluate(two(matmul), [[1, 2]], [[5, 8]])).toBe(21);
    expect(evaluate(two(matmul), [[a[0], a[0]]], b)).toEqual([ab, ab]);
    expect(evaluate(two(matmul), a, [[b[0], b[0]]])).toEqual([ab, ab]);
    expect(evaluate(two(matmul), [[1, 2]], [[b[0], b[0]]])).toEqual([
      [21, 24, 27],
      [21, 24, 27],
    ]);
    expect(evaluate(two(matmul), [[[a[0]], [a[0]]]], [[b[0], b[0], b[0]]])).toEqual([
      [ab, ab, ab],
      [ab, ab, ab],
    ]);
  });
  it("linear with and without bias", () => {
    const w: Input = [
      [
        [5, 8],
        [6, 9],
        [7, 10],
      ],
    ];
    expect(evaluate(two(linear), a, w)).toEqual(ab);
    expect(evaluate(three(linear), a, w, [[100, 200, 300]])).toEqual([
      [121, 224, 327],
      [147, 254, 361],
    ]);
    expect(evaluate(two(linear), [[[a[0]]]], w)).toEqual([[ab]]);
    expect(evaluate(two(linear), [[1, 2]], w)).toEqual([21, 24, 27]);
    expect(evaluate(three(linear), a, [[5, 8]], [3])).toEqual([24, 50]);
  });
  it("integers wrap in every dtype", () => {
    expect(evaluate(two(matmul), [[65536, 1], "int"], [[65536, 5], "int"])).toBe(5);
    expect(evaluate(two(matmul), [[2n ** 32n, 1n], "int64"], [[2n ** 32n, 5n], "int64"])).toBe(5n);
    expect(evaluate(three(linear), [[[1, 2]], "int"], [[[3, 4]], "int"], [[2 ** 31 - 1], "int"])).toEqual([
      [-(2 ** 31) + 10],
    ]);
  });
});

describe("sizes that do not fit", () => {
  const sizesOf =
    (build: (f: Fusion) => TensorView, ...shapes: readonly (readonly number[])[]) =>
    (): unknown => {
      const f = new Fusion();
      f.output(build(f));
      return evaluateFusion(
        f.data(),
        shapes.map((shape) => Tensor.zeros(shape)),
      );
    };
  it.each([
    ["size-mismatch", "i0} of T0 has 3", sizesOf((f) => add(f.input([null]), f.input([4])), [3], [4])],
    ["size-mismatch", "has 1", sizesOf((f) => add(f.input([null]), f.input([4])), [1], [4])],
    ["size-mismatch", "T1 has 6", sizesOf((f) => matmul(f.input([2, null]), f.input([null, 3])), [2, 5], [6, 3])],
    ["size-mismatch", "[7] to [2, 3]", sizesOf((f) => reshape(f.input([null]), [2, -1]), [7])],
    ["size-mismatch", "[5] to [6]", sizesOf((f) => reshape(f.input([null]), [6]), [5])],
    ["index-out-of-range", "[0, 4) of size 3", sizesOf((f) => slice(f.input([null]), [0], [4]), [3])],
    ["index-out-of-range", "3 of size 3", sizesOf((f) => select(f.input([null]), 0, 3), [3])],
    ["index-out-of-range", "-1 of size 3", sizesOf((f) => select(f.input([null]), 0, -4), [3])],
    ["input-count", "2", sizesOf((f) => set(f.input([null])), [3], [3])],
    ["input-shape", "[3, 1]", sizesOf((f) => set(f.input([null])), [3, 1])],
    ["input-shape", "float", sizesOf((f) => set(f.input([null], "half")), [3])],
  ])("%s: %s", (code, found, call) => {
    const diagnostic = diagnosticOf(call);
    expect(diagnostic.code).toBe(code);
    expect(diagnostic.found).toContain(found);
    expect(diagnostic.help).toBeTruthy();
  });
});
