/** Rows at the edges of their arguments: values that PyTorch 2.13 computed of the same exported op. */
import { describe, expect, it } from "vitest";
import { Tensor } from "../../../src/numerics/tensor/host-tensor.ts";
import { at } from "../../../src/support/invariant.ts";
import { dtypeArgument, float } from "./written-model.ts";
import { type Case, computed, flat, one, shapeOf, tensor } from "./written-row.ts";

const scalar = tensor(3);
const matrix = tensor([
  [1, 2, 3],
  [4, 5, 6],
]);
const counts = tensor([5, -2], "int64");
const flags = tensor([1, 0, 1], "bool");
const cube = tensor([
  [
    [0, 1],
    [2, 3],
  ],
  [
    [4, 5],
    [6, 7],
  ],
]);

const cases: readonly Case[] = [
  // A tensor without axes has an axis of extent 1 to `dim`.
  one("sum.dim_IntList", { x: scalar }, { self: "x", dim: [-1] }, 3),
  one("mean.dim", { x: scalar }, { self: "x", dim: [0], keepdim: true }, 3),
  one("softmax.int", { x: scalar }, { self: "x", dim: 0 }, 1),
  one("cumsum.default", { x: scalar }, { self: "x", dim: -1 }, 3),
  one("var.correction", { x: scalar }, { self: "x", correction: 0 }, 0),
  {
    op: "sort.default",
    given: { x: scalar },
    inputs: { self: "x", dim: -1 },
    results: [
      ["float", 3],
      ["int64", 0],
    ],
  },
  one("squeeze.dim", { x: scalar }, { self: "x", dim: 0 }, 3),
  one("repeat.default", { x: scalar }, { self: "x", repeats: [2] }, [3, 3]),
  // An index without axes is one of a single element.
  one("index_select.default", { x: matrix, i: tensor(1, "int64") }, { self: "x", dim: 0, index: "i" }, [[4, 5, 6]]),
  // An empty list of axes is every axis to sums, and none to quantifiers.
  one("sum.dim_IntList", { x: matrix }, { self: "x", dim: [] }, 21),
  one("any.dims", { x: tensor([0, 2]) }, { self: "x", dim: [] }, [0, 1], "bool"),
  one("all.dims", { x: tensor([0, 2]) }, { self: "x", dim: [] }, [0, 1], "bool"),
  one("argmax.default", { x: matrix }, { self: "x" }, 5, "int64"),
  one("argmin.default", { x: matrix }, { self: "x", dim: 1, keepdim: true }, [[0], [0]], "int64"),
  {
    op: "min.dim",
    given: { x: tensor([[2, 1, 1]]) },
    inputs: { self: "x", dim: 1 },
    results: [
      ["float", [1]],
      ["int64", [1]],
    ],
  },
  {
    op: "std_mean.correction",
    given: { x: tensor([[1, 3]]) },
    inputs: { self: "x", dim: [1], correction: 0 },
    results: [
      ["float", [1]],
      ["float", [2]],
    ],
  },
  one("logsumexp.default", { x: tensor([0], "int64") }, { self: "x", dim: [0] }, 0),
  // A correction of more than there are elements.
  one("var.correction", { x: tensor([1, 3]) }, { self: "x", dim: [0], correction: 5 }, Infinity),
  // Factors of integers lose their fraction, and operands have the dtype of the result before a factor.
  one(
    "addcmul.default",
    { x: counts, a: counts, b: counts },
    { self: "x", tensor1: "a", tensor2: "b", value: float(1.5) },
    [30, 2],
    "int64",
  ),
  one(
    "addmm.default",
    { x: tensor([3], "int64"), a: tensor([[2]], "int64"), b: tensor([[5]], "int64") },
    { self: "x", mat1: "a", mat2: "b", alpha: float(2.5), beta: float(1.5) },
    [[23]],
    "int64",
  ),
  one(
    "sub.Tensor",
    { x: tensor(1), y: tensor(1.0009765625, "half") },
    { self: "x", other: "y", alpha: 3 },
    -2.0029296875,
  ),
  // Numbers in the dtype of the tensor.
  one("full.default", {}, { size: [2], fill_value: float(2.5), dtype: dtypeArgument("int64") }, [2, 2], "int64"),
  one("pad.default", { x: counts }, { self: "x", pad: [1, 0], value: float(-2.5) }, [-2, 5, -2], "int64"),
  one("constant_pad_nd.default", { x: flags }, { self: "x", pad: [1, 0], value: float(2.5) }, [1, 1, 0, 1], "bool"),
  one(
    "scatter.value",
    { x: flags, i: tensor([1], "int64") },
    { self: "x", dim: 0, index: "i", value: 2 },
    [1, 1, 1],
    "bool",
  ),
  one("fill.Scalar", { x: flags }, { self: "x", value: float(0.5) }, [1, 1, 1], "bool"),
  one("fill.Tensor", { x: counts, v: tensor(2.5) }, { self: "x", value: "v" }, [2, 2], "int64"),
  one("zero.default", { x: counts }, { self: "x" }, [0, 0], "int64"),
  one("copy.default", { x: counts, y: tensor(-1.5) }, { self: "x", src: "y" }, [-1, -1], "int64"),
  one("sign.default", { x: tensor([NaN, -2, 0]) }, { self: "x" }, [0, -1, 0]),
  one("pow.Tensor_Scalar", { x: flags }, { self: "x", exponent: 2 }, [1, 0, 1], "int64"),
  one("remainder.Scalar_Tensor", { x: tensor([3, -3]) }, { self: 7, other: "x" }, [1, -2]),
  one("diff.default", { x: flags }, { self: "x" }, [1, 1], "bool"),
  one("arange.default", {}, { end: float(2.5) }, [0, 1, 2]),
  one("narrow.default", { x: matrix }, { self: "x", dim: 1, start: -2, length: 1 }, [[2], [5]]),
  one("repeat_interleave.self_int", { x: matrix }, { self: "x", repeats: 2 }, [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]),
  one(
    "slice_scatter.default",
    {
      x: matrix,
      s: tensor([
        [7, 8],
        [9, 0],
      ]),
    },
    { self: "x", src: "s", dim: 1, start: 0, end: 3, step: 2 },
    [
      [7, 2, 8],
      [9, 5, 0],
    ],
  ),
  one("numpy_T.default", { x: cube }, { self: "x" }, [
    [
      [0, 4],
      [2, 6],
    ],
    [
      [1, 5],
      [3, 7],
    ],
  ]),
  // Axes of indices with a gap between them come first.
  one(
    "index.Tensor",
    { x: cube, i: tensor([1, 1, 0], "int64"), j: tensor([0, 1, -1], "int64") },
    { self: "x", indices: ["i", null, "j"] },
    [
      [4, 6],
      [5, 7],
      [1, 3],
    ],
  ),
  one(
    "index_put.default",
    { x: cube, i: tensor([1], "int64"), j: tensor([0], "int64"), v: tensor([8, 9]) },
    { self: "x", indices: ["i", null, "j"], values: "v" },
    [
      [
        [0, 1],
        [2, 3],
      ],
      [
        [8, 5],
        [9, 7],
      ],
    ],
  ),
  one(
    "index_put.default",
    { x: matrix, m: tensor([1, 0], "bool"), v: tensor(0) },
    { self: "x", indices: { as_optional_tensors: [{ as_tensor: { name: "m" } }] }, values: "v" },
    [
      [0, 0, 0],
      [4, 5, 6],
    ],
  ),
];

describe("rows at the edges of their arguments", () => {
  it.each(cases.map((each) => ({ ...each, shown: JSON.stringify(each.inputs) })))("$op $shown", (each) => {
    for (const asConstants of [false, true]) {
      const found = computed(each, asConstants);
      each.results.forEach(([dtype, values], i) => {
        const tensorFound = at(found, i);
        expect([tensorFound.dtype, ...tensorFound.shape]).toEqual([dtype, ...shapeOf(values)]);
        expect(Array.from(Tensor.values(tensorFound), Number)).toEqual(flat(values));
      });
    }
  });
});
