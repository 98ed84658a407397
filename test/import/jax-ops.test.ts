/** Ops in the spellings and with the values of JAX 0.10.2, which the specification's examples do not have. */
import { expect, it } from "vitest";
import { importModel } from "@braid-compiler/braid";
import { evaluateOps, type OpRow } from "./evaluate-ops.ts";

/** `index_vector_dim = 0` is not printed. */
const scattered = (
  numbers: string,
  into: string,
  updates: string,
  ops = "stablehlo.return %b : tensor<f32>",
): string => `
  %r = "stablehlo.scatter"(%0, %1, %2) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<${numbers}>, unique_indices = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    ${ops}
  }) : (tensor<${into}>, tensor<${updates}) -> tensor<${into}>`;

const grid = [
  [1, 2],
  [3, 4],
  [5, 6],
];

const converted = (from: string, to: string): string =>
  `%r = stablehlo.convert %0 : (tensor<4x${from}>) -> tensor<4x${to}>`;

const rows: readonly OpRow[] = [
  {
    name: "x[:, i]",
    types: [["3x2xf32", "1xi32"], ["3xf32"]],
    body: `%r = "stablehlo.gather"(%0, %1) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1]>, indices_are_sorted = false, slice_sizes = array<i64: 3, 1>}> : (tensor<3x2xf32>, tensor<1xi32>) -> tensor<3xf32>`,
    inputs: [grid, [1]],
    outputs: [[2, 4, 6]],
  },
  {
    name: "x.at[i].set(u)",
    types: [["3x2xf32", "1xi32", "2xf32"], ["3x2xf32"]],
    body: scattered(
      "update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]",
      "3x2xf32",
      "1xi32>, tensor<2xf32>",
    ),
    inputs: [grid, [1], [8, 9]],
    outputs: [
      [
        [1, 2],
        [8, 9],
        [5, 6],
      ],
    ],
  },
  {
    name: "x.at[i, j].set(u)",
    types: [["3x2xf32", "2xi32", "f32"], ["3x2xf32"]],
    body: scattered(
      "inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1]",
      "3x2xf32",
      "2xi32>, tensor<f32>",
    ),
    inputs: [grid, [2, 0], 7],
    outputs: [
      [
        [1, 2],
        [3, 4],
        [7, 6],
      ],
    ],
  },
  {
    name: "x.at[1:].subtract(u)",
    types: [["3x2xf32", "1xi32", "2x2xf32"], ["3x2xf32"]],
    body: scattered(
      "update_window_dims = [0, 1], scatter_dims_to_operand_dims = [0]",
      "3x2xf32",
      "1xi32>, tensor<2x2xf32>",
      "%c = stablehlo.subtract %a, %b : tensor<f32>\n stablehlo.return %c : tensor<f32>",
    ),
    inputs: [
      grid,
      [1],
      [
        [1, 1],
        [2, 2],
      ],
    ],
    outputs: [
      [
        [1, 2],
        [2, 3],
        [3, 4],
      ],
    ],
  },
  {
    name: "floats beyond ui32",
    types: [["4xf32"], ["4xui32"]],
    body: converted("f32", "ui32"),
    inputs: [[1e20, -1, Number.NaN, 3e9]],
    outputs: [[4_294_967_295n, 0n, 0n, 3_000_000_000n]],
  },
  {
    name: "counters of jax.random: the words of ui64",
    types: [[], ["3xui32", "3xui32"]],
    body: `%n = stablehlo.iota dim = 0 : tensor<3xui64>
      %c = stablehlo.constant dense<6442450944> : tensor<3xui64>
      %d = stablehlo.constant dense<32> : tensor<3xui64>
      %m = stablehlo.multiply %n, %c : tensor<3xui64>
      %h = stablehlo.shift_right_logical %m, %d : tensor<3xui64>
      %r = stablehlo.convert %m : (tensor<3xui64>) -> tensor<3xui32>
      %s = stablehlo.convert %h : (tensor<3xui64>) -> tensor<3xui32>`,
    inputs: [],
    outputs: [
      [0n, 2_147_483_648n, 0n],
      [0n, 1n, 3n],
    ],
  },
  {
    name: "bits as floats",
    types: [
      ["5xi32", "4xui32"],
      ["5xf32", "4xf32"],
    ],
    body: `%r = stablehlo.bitcast_convert %0 : (tensor<5xi32>) -> tensor<5xf32>
      %s = stablehlo.bitcast_convert %1 : (tensor<4xui32>) -> tensor<4xf32>`,
    inputs: [
      [0x3f_80_00_01, -2_147_483_648, 1, -1_048_576, 0x7f_7f_ff_ff],
      [0x40_49_0f_dbn, 0x7f_80_00_00n, 0xff_80_00_00n, 0x80_7f_ff_ffn],
    ],
    outputs: [
      [1 + 2 ** -23, -0, 2 ** -149, Number.NaN, 2 ** 128 - 2 ** 104],
      [Math.fround(Math.PI), Infinity, -Infinity, -(2 ** -126 - 2 ** -149)],
    ],
  },
  {
    name: "remainders of floats have the sign of the dividend",
    types: [["4xf32", "4xf32"], ["4xf32"]],
    body: "%r = stablehlo.remainder %0, %1 : tensor<4xf32>",
    inputs: [
      [7.5, -7.5, 1e10, 3],
      [2, 2, 3, Infinity],
    ],
    outputs: [[1.5, -1.5, 1, 3]],
  },
  {
    name: "what a checkpoint rounds",
    types: [["2xf32"], ["2xf32", "2xf32"]],
    body: `%r = stablehlo.reduce_precision %0, format = e8m7 : tensor<2xf32>
      %s = "stablehlo.reduce_precision"(%0) <{exponent_bits = 8 : i32, mantissa_bits = 23 : i32}> : (tensor<2xf32>) -> tensor<2xf32>`,
    inputs: [[1 + 2 ** -9, 3]],
    outputs: [
      [1, 3],
      [1 + 2 ** -9, 3],
    ],
  },
];

it.each(rows)("$name", async (row) => {
  expect(await evaluateOps(row)).toEqual(row.outputs);
});

it("the inverse of erf", async () => {
  const [found] = await evaluateOps({
    name: "",
    types: [["5xf32"], ["5xf32"]],
    body: "%r = chlo.erf_inv %0 : tensor<5xf32> -> tensor<5xf32>",
    inputs: [[0.5, -0.999, 1, -1, 0]],
    outputs: [],
  });
  // scipy.special.erfinv
  const exact = [0.476_936_276, -2.326_753_766, Infinity, -Infinity, 0];
  expect(found).toEqual(exact.map((each): unknown => (Number.isFinite(each) ? expect.closeTo(each, 5) : each)));
});

it.each([
  ["a maximum", "%1 = stablehlo.maximum %0, %0 : tensor<2xui64>"],
  ["a float", "%1 = stablehlo.convert %0 : (tensor<2xui64>) -> tensor<2xf32>"],
])("refuses %s of ui64, whose sign would matter", async (_, op) => {
  const text = `func.func @main(%0: tensor<2xui64>) -> tensor<2xui64> {
    ${op}
    return %0 : tensor<2xui64>
  }`;
  await expect(importModel(text)).rejects.toThrow("of ui64 is not supported");
});
