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
const signs = tensor([-2, -1, 0, 1, 4]);
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
  // Functions of elements.
  one("frac.default", { x: tensor([-1.5, 2]) }, { self: "x" }, [-0.5, 0]),
  one("log10.default", { x: tensor([1]) }, { self: "x" }, [0]),
  one("erfc.default", { x: tensor([0]) }, { self: "x" }, [1]),
  one(
    "nan_to_num.default",
    { x: tensor([NaN, Infinity, -Infinity], "half") },
    { self: "x", nan: 1 },
    [1, 65504, -65504],
    "half",
  ),
  one("atan2.default", { x: tensor([0]), y: tensor([[1], [0]]) }, { self: "x", other: "y" }, [[0], [0]]),
  one("fmod.Tensor", { x: counts, y: tensor([-3, 2], "int64") }, { self: "x", other: "y" }, [2, 0], "int64"),
  one("fmod.Scalar", { x: tensor([-5, 5]) }, { self: "x", other: 3 }, [-2, 2]),
  one(
    "logaddexp.default",
    { x: tensor([Infinity, -Infinity]), y: tensor([Infinity, -Infinity]) },
    { self: "x", other: "y" },
    [Infinity, -Infinity],
  ),
  one("lerp.Scalar", { x: tensor([1]), y: tensor([[3], [5]]) }, { self: "x", end: "y", weight: float(0.5) }, [
    [2],
    [3],
  ]),
  one(
    "addcdiv.default",
    { x: signs, y: tensor([2]) },
    { self: "x", tensor1: "x", tensor2: "y", value: 2 },
    [-4, -2, 0, 2, 8],
  ),
  one(
    "outer.default",
    { x: counts, y: flags },
    { self: "x", vec2: "y" },
    [
      [5, 0, 5],
      [-2, 0, -2],
    ],
    "int64",
  ),
  one("linalg_vector_norm.default", { x: tensor(-300, "half") }, { self: "x", ord: 2, dim: [-1] }, 300, "half"),
  // Arrangements.
  one("roll.default", { x: matrix }, { self: "x", shifts: [1, -1], dims: [0, -1] }, [
    [5, 6, 4],
    [2, 3, 1],
  ]),
  one("roll.default", { x: matrix }, { self: "x", shifts: [8] }, [
    [5, 6, 1],
    [2, 3, 4],
  ]),
  one("movedim.int", { x: tensor([[[1, 2, 3]]]) }, { self: "x", source: -1, destination: 0 }, [[[1]], [[2]], [[3]]]),
  {
    op: "broadcast_tensors.default",
    given: { x: tensor([[1], [2]]), y: tensor([3, 4]) },
    inputs: { tensors: ["x", "y"] },
    results: [
      [
        "float",
        [
          [1, 1],
          [2, 2],
        ],
      ],
      [
        "float",
        [
          [3, 4],
          [3, 4],
        ],
      ],
    ],
  },
  one(
    "index_add.default",
    { x: tensor([1, 2]), i: tensor([-1, 1], "int64"), s: tensor([3, 4]) },
    { self: "x", dim: 0, index: "i", source: "s", alpha: 2 },
    [1, 16],
  ),
  one(
    "index_copy.default",
    { x: tensor([1, 2]), i: tensor([1], "int64"), s: tensor([3]) },
    { self: "x", dim: 0, index: "i", source: "s" },
    [1, 3],
  ),
  one(
    "index_fill.int_Scalar",
    { x: counts, i: tensor([-1], "int64") },
    { self: "x", dim: 0, index: "i", value: float(1.5) },
    [5, 1],
    "int64",
  ),
  one(
    "take_along_dim.default",
    { x: tensor([[1, 2]]), i: tensor([[0], [-1]], "int64") },
    { self: "x", indices: "i", dim: 1 },
    [[1], [2]],
  ),
  one(
    "one_hot.default",
    { x: tensor([2, 0], "int64") },
    { self: "x", num_classes: 3 },
    [
      [0, 0, 1],
      [1, 0, 0],
    ],
    "int64",
  ),
  // Losses.
  one("l1_loss.default", { x: signs, y: tensor([0, 0, 0, 0, 0]) }, { self: "x", target: "y", reduction: 2 }, 8),
  one(
    "smooth_l1_loss.default",
    { x: tensor([3, 1]), y: tensor([0, 0]) },
    { self: "x", target: "y", reduction: 0, beta: 2 },
    [2, 0.25],
  ),
  one(
    "huber_loss.default",
    { x: tensor([3, 1]), y: tensor([0, 0]) },
    { self: "x", target: "y", reduction: 2, delta: 2 },
    4.5,
  ),
  one(
    "binary_cross_entropy_with_logits.default",
    { x: tensor([-100, 100]), y: tensor([1, 0]) },
    { self: "x", target: "y" },
    100,
  ),
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
