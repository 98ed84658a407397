/**
 * Ops at the edges of their types, as XLA computes them: unsigned words that wrap, divisors of 0, distances past the
 * width, axes without elements, orders by several operands. Random modules beside an evaluator in numpy found them.
 */
import { expect, it } from "vitest";
import { importModel } from "@braid-compiler/braid";
import { evaluateOps, type OpRow } from "./evaluate-ops.ts";

const least = -2_147_483_648;
const most = 4_294_967_295n;

/** `kind` of all elements, from an initial value. */
const reduced = (kind: string, type: string, init: string): string => `
  %init = stablehlo.constant dense<${init}> : tensor<${type}>
  %r = stablehlo.reduce(%0 init: %init) applies stablehlo.${kind} across dimensions = [0] : (tensor<3x${type}>, tensor<${type}>) -> tensor<${type}>`;

const summedUp = (type: string, init: string): string => `
  %init = stablehlo.constant dense<${init}> : tensor<${type}>
  %r = "stablehlo.reduce_window"(%0, %init) <{padding = dense<[[2, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 3>}> ({
  ^bb0(%a: tensor<${type}>, %b: tensor<${type}>):
    %q = stablehlo.add %a, %b : tensor<${type}>
    stablehlo.return %q : tensor<${type}>
  }) : (tensor<3x${type}>, tensor<${type}>) -> tensor<3x${type}>`;

/** The extremum of three and an index, as `jnp.argmin` prints it; `index`: what makes %i. */
const extremum = (type: string, index: string): string => `
  ${index}
  %init = stablehlo.constant dense<${type === "i32" ? 2_147_483_647 : "0x7F800000"}> : tensor<${type}>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %s, %r = stablehlo.reduce(%0 init: %init), (%i init: %zero) across dimensions = [0] : (tensor<3x${type}>, tensor<3xi32>, tensor<${type}>, tensor<i32>) -> (tensor<${type}>, tensor<i32>)
   reducer(%a: tensor<${type}>, %c: tensor<${type}>) (%b: tensor<i32>, %d: tensor<i32>) {
    %1 = stablehlo.compare LT, %a, %c : (tensor<${type}>, tensor<${type}>) -> tensor<i1>
    %2 = stablehlo.compare NE, %a, %a : (tensor<${type}>, tensor<${type}>) -> tensor<i1>
    %3 = stablehlo.or %1, %2 : tensor<i1>
    %4 = stablehlo.compare EQ, %a, %c : (tensor<${type}>, tensor<${type}>) -> tensor<i1>
    %5 = stablehlo.compare LT, %b, %d, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %6 = stablehlo.and %4, %5 : tensor<i1>
    %7 = stablehlo.or %3, %6 : tensor<i1>
    %8 = stablehlo.select %3, %a, %c : tensor<i1>, tensor<${type}>
    %9 = stablehlo.select %7, %b, %d : tensor<i1>, tensor<i32>
    stablehlo.return %8, %9 : tensor<${type}>, tensor<i32>
  }`;

/** Two operands in an order that `body` compares: %a and %b of the first, %c and %d of the second. */
const sorted = (body: string): string => `
  %r, %s = "stablehlo.sort"(%0, %1) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<f32>):
    ${body}
    stablehlo.return %p : tensor<i1>
  }) : (tensor<4xi32>, tensor<4xf32>) -> (tensor<4xi32>, tensor<4xf32>)`;

/** As `jax.lax.sort(.., num_keys=2)` prints it, in these directions. */
const lexicographic = (first: string, second: string): string => `
    %x = stablehlo.compare ${first}, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %y = stablehlo.compare EQ, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %z = stablehlo.compare ${second}, %c, %d, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %w = stablehlo.and %y, %z : tensor<i1>
    %p = stablehlo.or %x, %w : tensor<i1>`;

const sorting = {
  types: [
    ["4xi32", "4xf32"],
    ["4xi32", "4xf32"],
  ],
  inputs: [
    [2, 1, 2, 1],
    [4, 3, 1, 2],
  ],
} as const;

const rows: readonly OpRow[] = [
  {
    name: "integers divided by 0 have all bits set",
    types: [
      ["3xi32", "3xi32"],
      ["3xi32", "3xi32"],
    ],
    body: `%zero = stablehlo.constant dense<0> : tensor<3xi32>
      %r = stablehlo.divide %0, %1 : tensor<3xi32>
      %s = stablehlo.divide %0, %zero : tensor<3xi32>`,
    inputs: [
      [7, -7, least],
      [0, 2, -1],
    ],
    outputs: [
      [-1, -3, least],
      [-1, -1, -1],
    ],
  },
  {
    name: "unsigned words divided by 0, of constants as well",
    types: [
      ["2xui32", "2xui32"],
      ["2xui32", "2xui32"],
    ],
    body: `%a = stablehlo.constant dense<[5, 6]> : tensor<2xui32>
      %b = stablehlo.constant dense<[0, 4]> : tensor<2xui32>
      %r = stablehlo.divide %0, %1 : tensor<2xui32>
      %c = stablehlo.divide %a, %b : tensor<2xui32>
      %s = stablehlo.maximum %c, %c : tensor<2xui32>`,
    inputs: [
      [7n, 7n],
      [0n, 2n],
    ],
    outputs: [
      [most, 3n],
      [most, 1n],
    ],
  },
  {
    name: "shifts past the width, to the left and with the sign",
    types: [
      ["4xi32", "4xi32"],
      ["4xi32", "4xi32"],
    ],
    body: `%r = stablehlo.shift_left %0, %1 : tensor<4xi32>
      %s = stablehlo.shift_right_arithmetic %0, %1 : tensor<4xi32>`,
    inputs: [
      [1, -8, 5, -5],
      [31, 32, -1, 33],
    ],
    outputs: [
      [least, 0, 0, 0],
      [0, -1, 0, -1],
    ],
  },
  {
    name: "logical shifts by distances that a run computes, and by 32",
    types: [
      ["4xi32", "4xi32"],
      ["4xi32", "4xi32"],
    ],
    body: `%by = stablehlo.constant dense<32> : tensor<4xi32>
      %r = stablehlo.shift_right_logical %0, %1 : tensor<4xi32>
      %s = stablehlo.shift_right_logical %0, %by : tensor<4xi32>`,
    inputs: [
      [-1, -1, -1, -1],
      [0, 1, 31, 32],
    ],
    outputs: [
      [-1, 2_147_483_647, 1, 0],
      [0, 0, 0, 0],
    ],
  },
  {
    name: "a sum of unsigned words wraps",
    types: [["3xui32"], ["ui32"]],
    body: reduced("add", "ui32", "0"),
    inputs: [[most, 2n, 3n]],
    outputs: [4n],
  },
  {
    name: "a running sum of unsigned words wraps",
    types: [["3xui32"], ["3xui32"]],
    body: summedUp("ui32", "0"),
    inputs: [[most, 2n, 3n]],
    outputs: [[most, 1n, 4n]],
  },
  {
    name: "a running sum from an initial value",
    types: [["3xi32"], ["3xi32"]],
    body: summedUp("i32", "10"),
    inputs: [[1, 2, 3]],
    outputs: [[11, 13, 16]],
  },
  {
    name: "a contraction and a power of unsigned words wrap",
    types: [
      ["2xui32", "2xui32"],
      ["ui32", "2xui32"],
    ],
    body: `%two = stablehlo.constant dense<2> : tensor<2xui32>
      %r = stablehlo.dot_general %0, %1, contracting_dims = [0] x [0] : (tensor<2xui32>, tensor<2xui32>) -> tensor<ui32>
      %s = stablehlo.power %0, %two : tensor<2xui32>`,
    inputs: [
      [most, 65_536n],
      [2n, 65_536n],
    ],
    outputs: [4_294_967_294n, [1n, 0n]],
  },
  {
    name: "a scatter that adds unsigned words wraps",
    types: [["2xui32", "1x1xi32", "1xui32"], ["2xui32"]],
    body: `%r = "stablehlo.scatter"(%0, %1, %2) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%a: tensor<ui32>, %b: tensor<ui32>):
        %q = stablehlo.add %a, %b : tensor<ui32>
        stablehlo.return %q : tensor<ui32>
      }) : (tensor<2xui32>, tensor<1x1xi32>, tensor<1xui32>) -> tensor<2xui32>`,
    inputs: [[most, most], [[1]], [2n]],
    outputs: [[most, 1n]],
  },
  {
    name: "argmin of the least integer",
    types: [["3xi32"], ["i32"]],
    body: extremum("i32", "%i = stablehlo.iota dim = 0 : tensor<3xi32>"),
    inputs: [[3, least, 5]],
    outputs: [1],
  },
  {
    name: "halves away from 0, next to a half and beyond the last one",
    types: [["6xf32"], ["6xf32", "6xf32"]],
    body: `%r = stablehlo.round_nearest_afz %0 : tensor<6xf32>
      %s = stablehlo.sign %0 : tensor<6xf32>`,
    inputs: [[0.499_999_97, -2.5, 8_388_609, -Infinity, -0, 0.5]],
    outputs: [
      [0, -3, 8_388_609, -Infinity, -0, 1],
      [1, -1, 1, -1, -0, 1],
    ],
  },
  {
    name: "a sort by two operands",
    ...sorting,
    body: sorted(lexicographic("LT", "LT")),
    outputs: [
      [1, 1, 2, 2],
      [2, 3, 1, 4],
    ],
  },
  {
    name: "a sort by two operands in two directions",
    ...sorting,
    body: sorted(lexicographic("GT", "LT")),
    outputs: [
      [2, 2, 1, 1],
      [1, 4, 2, 3],
    ],
  },
  {
    name: "a sort by the second operand",
    ...sorting,
    body: sorted("%p = stablehlo.compare GT, %c, %d, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>"),
    outputs: [
      [2, 1, 1, 2],
      [4, 3, 2, 1],
    ],
  },
  {
    name: "a slice of nothing, beside something",
    types: [["3xf32"], ["2xf32"]],
    body: `%a = stablehlo.slice %0 [3:3] : (tensor<3xf32>) -> tensor<0xf32>
      %b = stablehlo.slice %0 [1:3] : (tensor<3xf32>) -> tensor<2xf32>
      %r = stablehlo.concatenate %a, %b, dim = 0 : (tensor<0xf32>, tensor<2xf32>) -> tensor<2xf32>`,
    inputs: [[1, 2, 3]],
    outputs: [[2, 3]],
  },
  {
    name: "a padding that leaves nothing of its operand, and gaps where there is nothing",
    types: [
      ["1xf32", "f32"],
      ["2xf32", "2xf32"],
    ],
    body: `%e = stablehlo.constant dense<> : tensor<0xf32>
      %r = stablehlo.pad %0, %1, low = [-2], high = [3], interior = [0] : (tensor<1xf32>, tensor<f32>) -> tensor<2xf32>
      %s = stablehlo.pad %e, %1, low = [1], high = [1], interior = [2] : (tensor<0xf32>, tensor<f32>) -> tensor<2xf32>`,
    inputs: [[1], 9],
    outputs: [
      [9, 9],
      [9, 9],
    ],
  },
  {
    name: "an update of nothing",
    types: [["3xf32", "i32"], ["3xf32"]],
    body: `%e = stablehlo.constant dense<> : tensor<0xf32>
      %r = stablehlo.dynamic_update_slice %0, %e, %1 : (tensor<3xf32>, tensor<0xf32>, tensor<i32>) -> tensor<3xf32>`,
    inputs: [[1, 2, 3], 1],
    outputs: [[1, 2, 3]],
  },
  {
    name: "floats of 8 bits: an update, and a choice",
    types: [
      ["3xf8E5M2", "1xf8E5M2", "i32", "3xi1"],
      ["3xf8E5M2", "3xf8E5M2"],
    ],
    body: `%r = stablehlo.dynamic_update_slice %0, %1, %2 : (tensor<3xf8E5M2>, tensor<1xf8E5M2>, tensor<i32>) -> tensor<3xf8E5M2>
      %s = stablehlo.select %3, %0, %r : tensor<3xi1>, tensor<3xf8E5M2>`,
    inputs: [[1, 2, -Infinity], [-0], 1, [true, true, false]],
    outputs: [
      [1, -0, -Infinity],
      [1, 2, -Infinity],
    ],
  },
  {
    name: "constants of 64 bits beyond the whole numbers of a double",
    types: [["2xi64"], ["2xi64"]],
    body: `%c = stablehlo.constant dense<[9007199254740993, 9007199254740994]> : tensor<2xi64>
      %r = stablehlo.add %0, %c : tensor<2xi64>`,
    inputs: [[0n, 1n]],
    outputs: [[9_007_199_254_740_993n, 9_007_199_254_740_995n]],
  },
];

it.each(rows)("$name", async (row) => {
  expect(await evaluateOps(row)).toEqual(row.outputs);
});

it("refuses the extremum of a value that no axis counts: its index is no combination of its own", async () => {
  const shifted = `%n = stablehlo.iota dim = 0 : tensor<3xi32>
    %five = stablehlo.constant dense<5> : tensor<3xi32>
    %i = stablehlo.add %n, %five : tensor<3xi32>`;
  const text = `func.func @main(%0: tensor<3xf32>) -> (tensor<i32>) {
    ${extremum("f32", shifted)}
    return %r : tensor<i32>
  }`;
  await expect(importModel(text)).rejects.toThrow("a combination by another function");
});
