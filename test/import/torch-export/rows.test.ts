/** Rows of ATen ops on tensors of a few elements: the values that PyTorch's documentation defines. */
import { describe, expect, it } from "vitest";
import { buildModel, readOps } from "../../../src/import/torch-export/build.ts";
import { sourceOfBytes } from "../../../src/import/byte-source.ts";
import { readExportedProgram } from "../../../src/import/torch-export/read.ts";
import { packings } from "../../../src/numerics/convert.ts";
import { Tensor } from "../../../src/numerics/tensor/host-tensor.ts";
import { withGradients } from "./torch-files.ts";
import { at } from "../../../src/support/invariant.ts";
import { evaluateFusion } from "../../../src/oracle/evaluate.ts";
import { dtypeArgument, float, modelFile, type WrittenDType, type WrittenNode } from "./written-model.ts";
import { type Case, computed, flat, one, shapeOf, tensor } from "./written-row.ts";

const x = tensor([
  [1, -2, 3],
  [0.5, 4, -1],
]);
const y = tensor([
  [2, 2, 2],
  [4, 0.5, 1],
]);
const row = tensor([1, 2, 3]);
const counts = tensor([7, -7, 8], "int64");
const by = tensor([2, 2, -3], "int64");
const flags = tensor([1, 0, 1], "bool");

const self = { self: "x" };
const both = { self: "x", other: "y" };

const equation = (text: string): object => ({ as_string: text });

const cases: readonly Case[] = [
  one("einsum.default", { x, y }, { equation: equation("ij,kj->ik"), tensors: ["x", "y"] }, [
    [4, 6],
    [7, 3],
  ]),
  one("einsum.default", { x, y }, { equation: equation("...a, ...a"), tensors: ["x", "y"] }, [4, 3]),
  one("einsum.default", { x, y, row }, { equation: equation("ij,ij,j->ji"), tensors: ["x", "y", "row"] }, [
    [2, 2],
    [-8, 4],
    [18, -3],
  ]),
  one("einsum.default", { x, row }, { equation: equation("ij,k->k"), tensors: ["x", "row"] }, [5.5, 11, 16.5]),
  one("einsum.default", { row }, { equation: equation("i->"), tensors: ["row"] }, 6),
  one(
    "conv1d.padding",
    { x: tensor([[[1, -2, 3]]]), w: tensor([[[1, 10]]]) },
    { input: "x", weight: "w", stride: [1], padding: equation("same") },
    [[[-19, 28, 3]]],
  ),
  one(
    "conv1d.default",
    { x: tensor([[1, -2, 3]]), w: tensor([[[1, 10, 100]]]), b: tensor([0.5]) },
    { input: "x", weight: "w", bias: "b", stride: [2], padding: [1], dilation: [1], groups: 1 },
    [[-189.5, 28.5]],
  ),
  one(
    "convolution.default",
    { x: tensor([[[1, -2, 3]]]), w: tensor([[[1, 10]]]) },
    { input: "x", weight: "w", stride: [1], padding: [0], dilation: [2], transposed: false, groups: 1 },
    [[[31]]],
  ),
  one(
    "batch_norm.default",
    { x, m: tensor([1, 0, 1]), v: tensor([4, 1, 0.25]), w: tensor([1, 2, 3]), b: row },
    { input: "x", weight: "w", bias: "b", running_mean: "m", running_var: "v", training: false, momentum: 0.1, eps: 0 },
    [
      [1, -2, 15],
      [0.75, 10, -9],
    ],
  ),
  one(
    "group_norm.default",
    { x: tensor([[[1], [3], [-5], [5]]]), w: tensor([1, 2, 1, 2]), b: tensor([0, 0, 1, 1]) },
    { input: "x", num_groups: 2, weight: "w", bias: "b", eps: 0 },
    [[[-1], [2], [0], [3]]],
  ),
  {
    op: "native_group_norm.default",
    given: { x: tensor([[[1], [3], [-5], [5]]]) },
    inputs: { input: "x", weight: null, bias: null, N: 1, C: 4, HxW: 1, group: 2, eps: 0 },
    results: [["float", [[[-1], [1], [-1], [1]]]]],
  },
  {
    op: "meshgrid.indexing",
    given: { row, y: tensor([4, 5]) },
    inputs: { tensors: ["row", "y"], indexing: equation("xy") },
    results: [
      [
        "float",
        [
          [1, 2, 3],
          [1, 2, 3],
        ],
      ],
      [
        "float",
        [
          [4, 4, 4],
          [5, 5, 5],
        ],
      ],
    ],
  },
  ...(
    [
      ["relu6", {}, [-4, 6, 7, 3], [0, 6, 6, 3]],
      ["hardtanh", { min_val: -1, max_val: 2 }, [-3, 2, 7, 0.5], [-1, 2, 2, 0.5]],
      ["hardsigmoid", {}, [-4, -3, 0, 3], [0, 0, 0.5, 1]],
      ["hardswish", {}, [-4, -3, 1.5, 3], [0, 0, 1.125, 3]],
      ["leaky_relu", { negative_slope: 0.5 }, [-4, 0, 2, 3], [-2, 0, 2, 3]],
      ["elu", { alpha: 2 }, [-1, 0, 2, 900], [2 * Math.expm1(-1), 0, 2, 900]],
      ["celu", { alpha: 2 }, [-1, 0, 2, 900], [2 * Math.expm1(-0.5), 0, 2, 900]],
      ["selu", {}, [-1, 0, 1, 2], [-1.1113307, 0, 1.050701, 2.101402]],
      ["mish", {}, [0, 1, -1, 90], [0, 0.8650984, -0.3034015, 90]],
      ["log_sigmoid", {}, [0, 1, -1, -900], [-Math.LN2, -Math.log1p(Math.exp(-1)), -Math.log1p(Math.E), -900]],
      ["threshold", { threshold: 1, value: -5 }, [0, 1, 2, 3], [-5, -5, 2, 3]],
      ["hardshrink", { lambd: 1 }, [-2, -1, 1, 3], [-2, 0, 0, 3]],
      ["softshrink", { lambd: 1 }, [-2, -1, 1, 3], [-1, 0, 0, 2]],
      ["glu", { dim: 0 }, [1, 2, 0, 0], [0.5, 1]],
    ] as const
  ).map(([name, inputs, from, wanted]) =>
    one(`${name}.default`, { x: tensor(from) }, { self: "x", ...inputs }, wanted),
  ),
  one("prelu.default", { x: tensor([[-2, -2, 4]]), w: tensor([0.5, 2, 3]) }, { self: "x", weight: "w" }, [[-1, -4, 4]]),
  one("prelu.default", { x: tensor([[-2, -2, 4]]), w: tensor([0.5]) }, { self: "x", weight: "w" }, [[-1, -1, 4]]),
  one("eye.m", {}, { n: 2, m: 3 }, [
    [1, 0, 0],
    [0, 1, 0],
  ]),
  one(
    "eye.default",
    {},
    { n: 2 },
    [
      [1, 0],
      [0, 1],
    ],
    "bool",
  ),
  one(
    "_weight_norm.default",
    {
      v: tensor([
        [3, 4],
        [6, 8],
      ]),
      g: tensor([[1], [5]]),
    },
    { v: "v", g: "g", dim: 0 },
    [
      [0.6, 0.8],
      [3, 4],
    ],
  ),
  one("max.other", { x, row }, { self: "x", other: "row" }, [
    [1, 2, 3],
    [1, 4, 3],
  ]),
  one("min.other", { x, row }, { self: "x", other: "row" }, [
    [1, -2, 3],
    [0.5, 2, -1],
  ]),
  one("tile.default", { row }, { self: "row", dims: [2, 1] }, [
    [1, 2, 3],
    [1, 2, 3],
  ]),
  one("tile.default", { x }, { self: "x", dims: [2] }, [
    [1, -2, 3, 1, -2, 3],
    [0.5, 4, -1, 0.5, 4, -1],
  ]),
  one("reshape_as.default", { row, y: tensor([[0], [0], [0]]) }, { self: "row", other: "y" }, [[1], [2], [3]]),
  one("unfold.default", { x }, { self: "x", dimension: 1, size: 2, step: 1 }, [
    [
      [1, -2],
      [-2, 3],
    ],
    [
      [0.5, 4],
      [4, -1],
    ],
  ]),
  one("unfold.default", { x }, { self: "x", dimension: 0, size: 1, step: 3 }, [[[1], [-2], [3]]]),
  one("linalg_vector_norm.default", { x }, { self: "x", ord: 1, dim: [1] }, [6, 5.5]),
  one("linalg_vector_norm.default", { x }, { self: "x", ord: { as_float: "Infinity" }, dim: [0], keepdim: true }, [
    [1, 4, 3],
  ]),
  one("linalg_vector_norm.default", { y: tensor([[3, 4]]) }, { self: "y" }, 5),
  one("linalg_vector_norm.default", { y: tensor([3, 4, 5]) }, { self: "y", ord: 3 }, 6),
  one("add.Tensor", { x, y }, { ...both, alpha: 2 }, [
    [5, 2, 7],
    [8.5, 5, 1],
  ]),
  one("add.Tensor", { x, y: row }, both, [
    [2, 0, 6],
    [1.5, 6, 2],
  ]),
  one("sub.Tensor", { x, y: row }, { ...both, alpha: 2 }, [
    [-1, -6, -3],
    [-1.5, 0, -7],
  ]),
  one("rsub.Scalar", { x: row }, { self: "x", other: 10, alpha: 2 }, [8, 6, 4]),
  one("mul.Tensor", { x: flags, y: row }, both, [1, 0, 3]),
  one("mul.Scalar", { x: counts }, { self: "x", other: float(1) }, [7, -7, 8]),
  one("div.Tensor", { x: counts, y: by }, both, [3.5, -3.5, -8 / 3]),
  one(
    "div.Tensor_mode",
    { x: counts, y: by },
    { ...both, rounding_mode: { as_string: "floor" } },
    [3, -4, -3],
    "int64",
  ),
  one(
    "div.Tensor_mode",
    { x: counts, y: by },
    { ...both, rounding_mode: { as_string: "trunc" } },
    [3, -3, -2],
    "int64",
  ),
  one("floor_divide.default", { x: counts, y: by }, both, [3, -4, -3], "int64"),
  one("floor_divide.default", { x }, { self: "x", other: 2 }, [
    [0, -1, 1],
    [0, 2, -1],
  ]),
  one("remainder.Tensor", { x: counts, y: by }, both, [1, 1, -1], "int64"),
  one("remainder.Scalar", { x }, { self: "x", other: float(1.5) }, [
    [1, 1, 0],
    [0.5, 1, 0.5],
  ]),
  one("pow.Tensor_Scalar", { x: row }, { self: "x", exponent: float(3) }, [1, 8, 27]),
  one("pow.Scalar", { x: row }, { self: 2, exponent: "x" }, [2, 4, 8]),
  one("neg.default", { x }, self, [
    [-1, 2, -3],
    [-0.5, -4, 1],
  ]),
  one("rsqrt.default", { x: tensor([4, 16], "int64") }, self, [0.5, 0.25]),
  one("bitwise_not.default", { x: counts }, self, [-8, 6, -9], "int64"),
  one("logical_not.default", { x: counts }, self, [0, 0, 0], "bool"),
  one("__and__.Tensor", { x: flags, y: tensor([1, 1, 0], "bool") }, both, [1, 0, 0], "bool"),
  one("bitwise_or.Tensor", { x: counts, y: by }, both, [7, -5, -3], "int64"),
  one(
    "gt.Scalar",
    { x },
    { self: "x", other: float(0.5) },
    [
      [1, 0, 1],
      [0, 1, 0],
    ],
    "bool",
  ),
  one("where.self", { c: tensor([[1, 0, 1]], "bool"), x, y }, { condition: "c", ...both }, [
    [1, 2, 3],
    [0.5, 0.5, -1],
  ]),
  one("masked_fill.Scalar", { x, m: flags }, { self: "x", mask: "m", value: -9 }, [
    [-9, -2, -9],
    [-9, 4, -9],
  ]),
  one("clamp.default", { x }, { self: "x", min: null, max: 1 }, [
    [1, -2, 1],
    [0.5, 1, -1],
  ]),
  one("addcmul.default", { x, y, z: row }, { self: "x", tensor1: "y", tensor2: "z", value: 2 }, [
    [5, 6, 15],
    [8.5, 6, 5],
  ]),
  one(
    "to.dtype",
    { x },
    { self: "x", dtype: dtypeArgument("int") },
    [
      [1, -2, 3],
      [0, 4, -1],
    ],
    "int",
  ),
  one("to.dtype", { x: tensor([0, 0.25]) }, { self: "x", dtype: dtypeArgument("bool") }, [0, 1], "bool"),
  // Recorded with PyTorch 2.13: values of 8 bits, larger ones than fit.
  one(
    "to.dtype",
    { x: tensor([0.3, 464, -500, Infinity, 2 ** -10]) },
    { self: "x", dtype: dtypeArgument("float8_e4m3fn") },
    [0.3125, 448, -448, 448, 0],
    "float8_e4m3fn",
  ),
  one(
    "to.dtype",
    { x: tensor([0.3, 61439, -61440, Infinity, 2 ** -17]) },
    { self: "x", dtype: dtypeArgument("float8_e5m2") },
    [0.3125, 57344, -Infinity, Infinity, 0],
    "float8_e5m2",
  ),
  one("sum.default", { x: tensor([2_147_483_647, 1], "int") }, self, 2_147_483_648, "int64"),
  one("prod.default", { x: tensor([65_536, 65_536], "int") }, self, 4_294_967_296, "int64"),
  one(
    "cumsum.default",
    { x: tensor([2_147_483_647, 1], "int") },
    { self: "x", dim: -1 },
    [2_147_483_647, 2_147_483_648],
    "int64",
  ),
  one(
    "pow.Tensor_Tensor",
    { x: tensor([3, -7, 1, 5], "int64"), y: tensor([20, 3, -1, -1], "int64") },
    { self: "x", exponent: "y" },
    [3_486_784_401, -343, 1, 0],
    "int64",
  ),
  one("pow.Scalar", { x: tensor([20, 0], "int64") }, { self: 3, exponent: "x" }, [3_486_784_401, 1], "int64"),
  one("pow.Tensor_Scalar", { x: tensor([2 ** 32], "int64") }, { self: "x", exponent: float(2) }, [2 ** 64]),
  one("remainder.Tensor", { x: tensor([5, -5, 5, 1e10, -1]), y: tensor([Infinity, Infinity, -3, 3, 3]) }, both, [
    5,
    Infinity,
    -1,
    1,
    2,
  ]),
  one("remainder.Scalar", { x: tensor([1e10, -6]) }, { self: "x", other: float(3) }, [1, -0]),
  one("floor_divide.default", { x: tensor([1, 5, -1, 7]), y: tensor([0.1, 0, Infinity, -2]) }, both, [
    9,
    Infinity,
    -1,
    -4,
  ]),
  one(
    "div.Tensor_mode",
    { x: tensor([1, -1]), y: tensor([0.1, 0.1]) },
    { ...both, rounding_mode: { as_string: "floor" } },
    [9, -10],
  ),
  one("div.Tensor", { x: tensor([16_777_217], "int64"), y: tensor([1], "double") }, both, [16_777_217], "double"),
  one("softplus.default", { x: tensor([2, 0]) }, { self: "x", beta: 1, threshold: 1 }, [2, Math.fround(Math.LN2)]),
  one("__lshift__.Scalar", { x: tensor([1, -3], "int64") }, { self: "x", other: 64 }, [0, 0], "int64"),
  one(
    "__rshift__.Tensor",
    { x: tensor([1, -3, -3], "int64"), y: tensor([64, 64, 1], "int64") },
    both,
    [0, -1, -2],
    "int64",
  ),
  one("clamp.default", { x: tensor([1, 5], "int64") }, { self: "x", min: float(2.5) }, [2.5, 5]),
  one("clamp.Tensor", { x, y: row }, { self: "x", min: "y" }, [
    [1, 2, 3],
    [1, 4, 3],
  ]),
  one("lt.Scalar", { x: tensor([2, 3], "int64") }, { self: "x", other: float(2.5) }, [1, 0], "bool"),
  one("eq.Scalar", { x: tensor([2, 3], "int64") }, { self: "x", other: float(2.5) }, [0, 0], "bool"),
  one("add.Scalar", { x: tensor([2, 3], "int64") }, { self: "x", other: float(0.5) }, [2.5, 3.5]),
  one("any.default", { x: tensor(0.5) }, self, 1, "bool"),
  one("slice.Tensor", { x: row }, { self: "x", dim: 0, start: 1, end: 2, step: 5 }, [2]),
  one("dropout.default", { x: row }, { input: "x", p: 0.1, train: false }, [1, 2, 3]),
  one("view.default", { x }, { self: "x", size: [3, -1] }, [
    [1, -2],
    [3, 0.5],
    [4, -1],
  ]),
  one("flatten.using_ints", { x }, self, [1, -2, 3, 0.5, 4, -1]),
  one("unflatten.int", { x }, { self: "x", dim: -1, sizes: [3, 1] }, [
    [[1], [-2], [3]],
    [[0.5], [4], [-1]],
  ]),
  one("permute.default", { x }, { self: "x", dims: [-1, 0] }, [
    [1, 0.5],
    [-2, 4],
    [3, -1],
  ]),
  one("t.default", { x }, self, [
    [1, 0.5],
    [-2, 4],
    [3, -1],
  ]),
  one("expand.default", { x: row }, { self: "x", size: [2, -1] }, [
    [1, 2, 3],
    [1, 2, 3],
  ]),
  one("squeeze.dim", { x: tensor([[1], [2]]) }, { self: "x", dim: -1 }, [1, 2]),
  one("slice.Tensor", { x: row }, { self: "x", dim: 0, start: -2, end: 2 ** 63 }, [2, 3]),
  one("slice.Tensor", { x: row }, { self: "x", dim: 0, start: 0, end: -1 }, [1, 2]),
  one("slice.Tensor", { x: row }, { self: "x", dim: 0, start: 0, end: 3, step: 2 }, [1, 3]),
  one("narrow.default", { x }, { self: "x", dim: 1, start: 1, length: 2 }, [
    [-2, 3],
    [4, -1],
  ]),
  one("select.int", { x }, { self: "x", dim: 1, index: -1 }, [3, -1]),
  one("cat.default", { x, y }, { tensors: ["x", "y"], dim: -1 }, [
    [1, -2, 3, 2, 2, 2],
    [0.5, 4, -1, 4, 0.5, 1],
  ]),
  one("stack.default", { x: row, y: row }, { tensors: ["x", "y"], dim: -1 }, [
    [1, 1],
    [2, 2],
    [3, 3],
  ]),
  one("repeat.default", { x: row }, { self: "x", repeats: [2, 2] }, [
    [1, 2, 3, 1, 2, 3],
    [1, 2, 3, 1, 2, 3],
  ]),
  one("constant_pad_nd.default", { x }, { self: "x", pad: [1, 0, 0, 1], value: 7 }, [
    [7, 1, -2, 3],
    [7, 0.5, 4, -1],
    [7, 7, 7, 7],
  ]),
  one("tril.default", { x }, { self: "x", diagonal: 1 }, [
    [1, -2, 0],
    [0.5, 4, -1],
  ]),
  one("triu.default", { x }, self, [
    [1, -2, 3],
    [0, 4, -1],
  ]),
  one("gather.default", { x, i: tensor([[2, 0]], "int64") }, { self: "x", dim: 1, index: "i" }, [[3, 1]]),
  one(
    "index.Tensor",
    { x, i: tensor([1, 0], "int64"), j: tensor([[-1], [0]], "int64") },
    { self: "x", indices: ["i", "j"] },
    [
      [-1, 3],
      [0.5, 1],
    ],
  ),
  one("index.Tensor", { x, j: tensor([2, 0], "int64") }, { self: "x", indices: [null, "j"] }, [
    [3, 1],
    [-1, 0.5],
  ]),
  one("diff.default", { x, p: tensor([[0], [0]]) }, { self: "x", n: 1, dim: -1, prepend: "p" }, [
    [1, -3, 5],
    [0.5, 3.5, -5],
  ]),
  one("cumsum.default", { x }, { self: "x", dim: 1 }, [
    [1, -1, 2],
    [0.5, 4.5, 3.5],
  ]),
  one("cumsum.default", { x: flags }, { self: "x", dim: 0 }, [1, 1, 2], "int64"),
  one(
    "_scaled_mm.default",
    {
      x: tensor([Array.from({ length: 16 }, (_, i) => i - 7), Array.from({ length: 16 }, () => 2)], "float8_e4m3fn"),
      w: tensor(
        Array.from({ length: 16 }, (_, i) => [1, i % 2]),
        "float8_e4m3fn",
      ),
      a: tensor([[0.5], [3]]),
      b: tensor([[2, 4]]),
      bias: tensor([1, -1], "bfloat16"),
    },
    { self: "x", mat2: "w", scale_a: "a", scale_b: "b", bias: "bias", out_dtype: dtypeArgument("bfloat16") },
    [
      [9, 15],
      [193, 191],
    ],
    "bfloat16",
  ),
  // Blocks of 1 x 128 and of 128 x 128, of which the weight has one: ones times 128 times the scales.
  one(
    "_scaled_mm.default",
    {
      x: tensor(
        [Array.from({ length: 256 }, (_, i) => (i < 128 ? 1 : 2)), Array.from({ length: 256 }, () => 1)],
        "float8_e4m3fn",
      ),
      w: tensor(
        Array.from({ length: 256 }, () => [1, -1]),
        "float8_e4m3fn",
      ),
      a: tensor([
        [1, 2],
        [3, 4],
      ]),
      b: tensor([[0.5], [0.25]]),
    },
    { self: "x", mat2: "w", scale_a: "a", scale_b: "b", out_dtype: dtypeArgument("float") },
    [
      [192, -192],
      [320, -320],
    ],
    "float",
  ),
  one(
    "mm.default",
    {
      x,
      y: tensor([
        [1, 0],
        [0, 1],
        [1, 1],
      ]),
    },
    { self: "x", mat2: "y" },
    [
      [4, 1],
      [-0.5, 3],
    ],
  ),
  one(
    "addmm.default",
    {
      b: tensor([10, 20]),
      x,
      y: tensor([
        [1, 0],
        [0, 1],
        [1, 1],
      ]),
    },
    { self: "b", mat1: "x", mat2: "y", beta: 2, alpha: float(0.5) },
    [
      [22, 40.5],
      [19.75, 41.5],
    ],
  ),
  one(
    "baddbmm.default",
    { b: tensor([[[1]]]), x: tensor([[[1, 2]]]), y: tensor([[[3], [4]]]) },
    { self: "b", batch1: "x", batch2: "y" },
    [[[12]]],
  ),
  one("mean.dim", { x }, { self: "x", dim: [-1], keepdim: true }, [[2 / 3], [3.5 / 3]]),
  one("sum.dim_IntList", { x: flags }, { self: "x", dim: [0] }, 2, "int64"),
  one("amax.default", { x }, { self: "x", dim: [0], keepdim: true }, [[1, 4, 3]]),
  one("any.dim", { x: counts }, { self: "x", dim: 0 }, 1, "bool"),
  one("argmax.default", { x }, { self: "x", dim: 1, keepdim: true }, [[2], [1]], "int64"),
  one("var.correction", { x: row }, { self: "x", dim: [0], correction: 0 }, 2 / 3),
  one("rms_norm.default", { x: tensor([[3, 4]]) }, { input: "x", normalized_shape: [2], eps: 0.5 }, [
    [3 / Math.sqrt(13), 4 / Math.sqrt(13)],
  ]),
  {
    op: "max.dim",
    given: { x },
    inputs: { self: "x", dim: 1 },
    results: [
      ["float", [3, 4]],
      ["int64", [2, 1]],
    ],
  },
  {
    op: "topk.default",
    given: {
      x: tensor([
        [1, 3, 3, 2],
        [0, -1, -5, -1],
      ]),
    },
    inputs: { self: "x", k: 3 },
    results: [
      [
        "float",
        [
          [3, 3, 2],
          [0, -1, -1],
        ],
      ],
      [
        "int64",
        [
          [1, 2, 3],
          [0, 1, 3],
        ],
      ],
    ],
  },
  {
    op: "topk.default",
    given: { x: tensor([[1, 3, 3, 2]]) },
    inputs: { self: "x", k: 2, dim: -1, largest: false },
    results: [
      ["float", [[1, 2]]],
      ["int64", [[0, 3]]],
    ],
  },
  one("argsort.stable", { x: tensor([[3, 1, 2, 1]]) }, { self: "x", stable: true, dim: 1 }, [[1, 3, 2, 0]], "int64"),
  one("cumprod.default", { x: tensor([[1, 2], [3, 4]]) }, { self: "x", dim: 0 }, [[1, 2], [3, 8]]), // prettier-ignore
  {
    op: "sort.default",
    given: {
      x: tensor(
        [
          [3, 1, 2, 1],
          [0, 4, -1, 4],
        ],
        "int64",
      ),
    },
    inputs: { self: "x" },
    results: [
      [
        "int64",
        [
          [1, 1, 2, 3],
          [-1, 0, 4, 4],
        ],
      ],
      [
        "int64",
        [
          [1, 3, 2, 0],
          [2, 0, 1, 3],
        ],
      ],
    ],
  },
  {
    op: "sort.stable",
    given: {
      x: tensor([
        [3, 0],
        [1, 5],
        [3, 2],
      ]),
    },
    inputs: { self: "x", stable: true, dim: 0, descending: true },
    results: [
      [
        "float",
        [
          [3, 5],
          [3, 2],
          [1, 0],
        ],
      ],
      [
        "int64",
        [
          [0, 1],
          [2, 2],
          [1, 0],
        ],
      ],
    ],
  },
  one("histc.default", { x: tensor([0, 1, 1.9, 2, 3, 4, -1]) }, { self: "x", bins: 3, min: 0, max: 3 }, [1, 2, 2]),
  one(
    "_grouped_mm.default",
    {
      x: tensor([
        [1, 2],
        [3, 4],
        [5, 6],
      ]),
      w: tensor([
        [[1], [0]],
        [[9], [9]],
        [[0], [1]],
      ]),
      n: tensor([2, 2, 3], "int"),
    },
    { self: "x", mat2: "w", offs: "n" },
    [[1], [3], [6]],
  ),
  one(
    "index_put.default",
    { x: tensor([7, 8, 9]), i: tensor([2, 0], "int64"), v: tensor([1, 2]) },
    { self: "x", indices: ["i"], values: "v" },
    [2, 8, 1],
  ),
  one(
    "index_put.default",
    { x: tensor([7, 8, 9]), i: tensor([2, 2], "int64"), v: tensor([1, 2]) },
    { self: "x", indices: ["i"], values: "v", accumulate: true },
    [7, 8, 12],
  ),
  {
    op: "split.Tensor",
    given: { x: row },
    inputs: { self: "x", split_size: 2 },
    results: [
      ["float", [1, 2]],
      ["float", [3]],
    ],
  },
  {
    op: "chunk.default",
    given: { x: tensor([1, 2, 3, 4]) },
    inputs: { self: "x", chunks: 2 },
    results: [
      ["float", [1, 2]],
      ["float", [3, 4]],
    ],
  },
  {
    op: "unbind.int",
    given: { x },
    inputs: { self: "x", dim: 1 },
    results: [
      ["float", [1, 0.5]],
      ["float", [-2, 4]],
      ["float", [3, -1]],
    ],
  },
];

describe("rows", () => {
  it.each(cases.map((each) => ({ ...each, shown: JSON.stringify(each.inputs) })))("$op $shown", (each) => {
    for (const asConstants of [false, true]) {
      const found = computed(each, asConstants);
      each.results.forEach(([dtype, values], i) => {
        expect(found[i]?.dtype).toBe(dtype);
        expect(found[i]?.shape).toEqual(shapeOf(values));
        const elements = Tensor.values(at(found, i));
        flat(values).forEach((wanted, k) => {
          expect(Number(elements[k])).toBeCloseTo(wanted, 5);
        });
      });
    }
  });

  it("a complex tensor times numbers and real tensors", () => {
    const complex = ["complex64", [2]] as const;
    const program = readExportedProgram(
      sourceOfBytes(
        modelFile({
          inputs: { x: ["float", [2, 2]], s: ["float", [2]] },
          nodes: [
            { op: "view_as_complex.default", inputs: { self: "x" }, outputs: { c: complex } },
            { op: "mul.Tensor", inputs: { self: "c", other: 10 }, outputs: { d: complex } },
            { op: "mul.Tensor", inputs: { self: "s", other: "d" }, outputs: { e: complex } },
            { op: "mul.Tensor", inputs: { self: "e", other: "s" }, outputs: { f: complex } },
            { op: "view_as_real.default", inputs: { self: "f" }, outputs: { y: ["float", [2, 2]] } },
          ],
          outputs: ["y"],
        }),
      ),
    );
    const given = [
      Tensor.from(
        [
          [1, -2],
          [0.5, 3],
        ],
        "float",
      ),
      Tensor.from([1, 2], "float"),
    ];
    const [y] = evaluateFusion(buildModel(program).fusion.data(), given).outputs;
    expect(y?.data).toEqual(Float32Array.of(10, -20, 20, 120));
  });

  it("the slopes of activations at their corners are those of PyTorch", () => {
    const slopes = (op: string, inputs: object, from: readonly number[]): readonly number[] => {
      const program = readExportedProgram(
        sourceOfBytes(
          modelFile({
            inputs: { x: ["float", [from.length]] },
            nodes: [{ op, inputs: { self: "x", ...inputs }, outputs: { y: ["float", [from.length]] } }],
            outputs: ["y"],
          }),
        ),
      );
      const data = withGradients(buildModel(program), "dy", ["x"]).fusion.data();
      const [, dx] = evaluateFusion(data, [
        Tensor.from(from, "float"),
        Tensor.from(
          from.map(() => 1),
          "float",
        ),
      ]).outputs;
      return dx === undefined ? [] : Array.from<unknown, number>(dx.data, Number);
    };
    expect(slopes("relu6.default", {}, [0, 1, 6])).toEqual([0, 1, 0]);
    expect(slopes("hardtanh.default", {}, [-1, 0, 1])).toEqual([0, 1, 0]);
    expect(slopes("leaky_relu.default", { negative_slope: 0.25 }, [0, 1])).toEqual([0.25, 1]);
    expect(slopes("elu.default", {}, [0, 1, 900])).toEqual([1, 1, 1]);
    expect(slopes("softshrink.default", { lambd: 1 }, [-1, 1, 2])).toEqual([0, 0, 1]);
    expect(slopes("hardshrink.default", { lambd: 1 }, [-1, 1, 2])).toEqual([0, 0, 1]);
  });

  it("a parameter that no derivative reaches has no gradient, unless it is asked for", () => {
    const program = readExportedProgram(
      sourceOfBytes(
        modelFile({
          inputs: { x: ["float", [3]] },
          parameters: { scale: Tensor.zeros([3]), order: Tensor.zeros([3]) },
          nodes: [
            { op: "argsort.default", inputs: { self: "order" }, outputs: { i: ["int64", [3]] } },
            { op: "mul.Tensor", inputs: { self: "x", other: "scale" }, outputs: { z: ["float", [3]] } },
            { op: "index.Tensor", inputs: { self: "z", indices: ["i"] }, outputs: { y: ["float", [3]] } },
          ],
          outputs: ["y"],
        }),
      ),
    );
    expect(withGradients(buildModel(program), "dy").outputs.map(({ name }) => name)).toEqual(["y", "grad.scale"]);
    expect(() => withGradients(buildModel(program), "dy", ["order"])).toThrow(/passes argsort/u);
  });

  it("has only ops of PyTorch's names", () => {
    const ops = Object.values(readOps).flat();
    expect(ops.length).toBeGreaterThan(200);
    expect(
      ops.filter(
        (op) =>
          !/^(?:torch\.ops\.(?:aten|prims|transformers|_dtensor|_c10d_functional(?:_autograd)?)\.\w+\.\w+|_operator\.\w+)$/u.test(
            op,
          ),
      ),
    ).toEqual([]);
  });
});

describe("compositions whose gradients are closed forms", () => {
  const built = (
    nodes: readonly WrittenNode[],
    inputs: Readonly<Record<string, readonly [WrittenDType, readonly number[]]>>,
  ) =>
    withGradients(
      buildModel(readExportedProgram(sourceOfBytes(modelFile({ inputs, nodes, outputs: ["y"] })))),
      "dy",
      Object.keys(inputs),
    );
  const complex = (sizes: readonly number[]): readonly ["complex64", readonly number[]] => ["complex64", sizes];

  it.each(["bfloat16", "float"] as const)("a rotation of %s pairs by complex numbers, and back", (dtype) => {
    const x = [1, 2, 3, 4, -5, 6, 7, 8];
    const dy = [2, -1, 0.5, 4, 1, 1, 3, -2];
    // 3 + 4i and such: exact in bfloat16 products of small numbers.
    const turns = [3, 4, 0, 1, -1, 2, 2, 0];
    const model = built(
      [
        { op: "view_as_complex.default", inputs: { self: "t" }, outputs: { w: complex([2, 2]) } },
        { op: "unsqueeze.default", inputs: { self: "w", dim: 1 }, outputs: { w1: complex([2, 1, 2]) } },
        { op: "to.dtype", inputs: { self: "x", dtype: dtypeArgument("float") }, outputs: { x1: ["float", [2, 1, 4]] } },
        {
          op: "reshape.default",
          inputs: { self: "x1", shape: [2, 1, -1, 2] },
          outputs: { x2: ["float", [2, 1, 2, 2]] },
        },
        { op: "view_as_complex.default", inputs: { self: "x2" }, outputs: { c: complex([2, 1, 2]) } },
        { op: "mul.Tensor", inputs: { self: "c", other: "w1" }, outputs: { d: complex([2, 1, 2]) } },
        { op: "view_as_real.default", inputs: { self: "d" }, outputs: { r: ["float", [2, 1, 2, 2]] } },
        { op: "flatten.using_ints", inputs: { self: "r", start_dim: 2 }, outputs: { f: ["float", [2, 1, 4]] } },
        { op: "type_as.default", inputs: { self: "f", other: "x" }, outputs: { y: [dtype, [2, 1, 4]] } },
      ],
      { x: [dtype, [2, 1, 4]], t: ["float", [2, 2, 2]] },
    );
    const turned = (values: readonly number[], sign: number): readonly number[] =>
      values.map((own, i) => {
        const other = values[i ^ 1] ?? NaN;
        const [cos = NaN, sin = NaN] = turns.slice(i - (i % 2));
        return own * cos + other * sin * (i % 2 === 0 ? -sign : sign);
      });
    const data = model.fusion.data();
    const made = data.markers?.filter(({ name }) => name === "rope") ?? [];
    const from = (id: unknown): string | undefined => model.inputs.find(({ tensor }) => tensor.id === id)?.name;
    expect(made.map(({ operands, pairs }) => ["x" in operands && from(operands.x), pairs])).toContainEqual([
      "x",
      "neighbours",
    ]);
    const given = [
      tensor([[x.slice(0, 4)], [x.slice(4)]], dtype),
      tensor([
        [
          [3, 4],
          [0, 1],
        ],
        [
          [-1, 2],
          [2, 0],
        ],
      ]),
      tensor([[dy.slice(0, 4)], [dy.slice(4)]], dtype),
    ];
    const { outputs } = evaluateFusion(
      data,
      given.map((each) => Tensor.from(each.values, each.dtype)),
    );
    const found = outputs.map(({ dtype: own, data: words }) => {
      const numbers = Array.from<unknown, number>({ length: words.length }, (_, i) => Number(words[i]));
      return own === "bfloat16" ? numbers.map(packings.bfloat16.decode) : numbers;
    });
    // The result is in the dtype at once: a cast after the views would be a kernel.
    expect(data.ops.find(({ output }) => output === data.outputs[0])?.kind).toBe("Reshape");
    expect(found[0]).toEqual(turned(x, 1));
    expect(found[1]).toEqual(turned(dy, -1));
    // d y / d cos = x, d y / d sin = x turned by a quarter; for each pair.
    expect(found[2]).toEqual(
      turns.map((_, i) => {
        const [a = NaN, b = NaN] = x.slice(i - (i % 2));
        const [c = NaN, d = NaN] = dy.slice(i - (i % 2));
        return i % 2 === 0 ? a * c + b * d : a * d - b * c;
      }),
    );
  });

  it.each([
    ["silu first", "s", "u"],
    ["silu last", "u", "s"],
  ])("a gate, %s", (_, self, other) => {
    const { fusion, inputs } = built(
      [
        { op: "silu.default", inputs: { self: "g" }, outputs: { s: ["float", [3]] } },
        { op: "mul.Tensor", inputs: { self, other }, outputs: { y: ["float", [3]] } },
      ],
      { g: ["float", [3]], u: ["float", [3]] },
    );
    const [gate, up] = inputs.map(({ tensor }) => tensor.id);
    expect(fusion.data().markers).toContainEqual(expect.objectContaining({ name: "swiglu", operands: { gate, up } }));
  });
});
