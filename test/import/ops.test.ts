/** Ops whose reading is more than a call: each on numbers, beside the result that StableHLO's specification gives. */
import { describe, expect, it } from "vitest";
import { importModel } from "@braid-compiler/braid";
import { at } from "../../src/support/invariant.ts";
import { evaluateOps, type OpRow } from "./evaluate-ops.ts";

const grid = [
  [0, 1, 2, 3],
  [10, 11, 12, 13],
  [20, 21, 22, 23],
];

const scattered = (kind: string, extra = ""): string => `
  %r = "stablehlo.scatter"(%0, %1, %2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>${extra}}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    ${kind}
  }) : (tensor<3x2xf32>, tensor<3x1xi32>, tensor<3x2xf32>) -> tensor<3x2xf32>`;

const compared = (direction: string): string => `
  %r, %s = "stablehlo.sort"(%0, %1) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %p = stablehlo.compare ${direction}, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>)`;

/** As `jnp.argmax` and `jnp.argmin` print it. */
const extremum = (direction: string): string => `
  %i = stablehlo.iota dim = 1 : tensor<2x4xi32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %s, %r = stablehlo.reduce(%0 init: %low), (%i init: %zero) across dimensions = [1] : (tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
   reducer(%a: tensor<f32>, %c: tensor<f32>) (%b: tensor<i32>, %d: tensor<i32>) {
    %1 = stablehlo.compare ${direction}, %a, %c, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = stablehlo.compare NE, %a, %a, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %3 = stablehlo.or %1, %2 : tensor<i1>
    %4 = stablehlo.compare EQ, %a, %c, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %5 = stablehlo.compare LT, %b, %d, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %6 = stablehlo.and %4, %5 : tensor<i1>
    %7 = stablehlo.or %3, %6 : tensor<i1>
    %8 = stablehlo.select %3, %a, %c : tensor<i1>, tensor<f32>
    %9 = stablehlo.select %7, %b, %d : tensor<i1>, tensor<i32>
    stablehlo.return %8, %9 : tensor<f32>, tensor<i32>
  }`;

const rows: readonly OpRow[] = [
  {
    name: "gather of rows, whose indices are clamped",
    types: [["3x4xf32", "3xi32"], ["3x4xf32"]],
    body: `%i = stablehlo.reshape %1 : (tensor<3xi32>) -> tensor<3x1xi32>
      %r = "stablehlo.gather"(%0, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<3x4xf32>, tensor<3x1xi32>) -> tensor<3x4xf32>`,
    inputs: [grid, [2, -5, 9]],
    outputs: [[at(grid, 2), at(grid, 0), at(grid, 2)]],
  },
  {
    name: "gather of windows at pairs of indices",
    types: [["3x4xf32", "2x2xi32"], ["2x2xf32"]],
    body: `%r = "stablehlo.gather"(%0, %1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [1, 0], index_vector_dim = 0>, slice_sizes = array<i64: 1, 2>}> : (tensor<3x4xf32>, tensor<2x2xi32>) -> tensor<2x2xf32>`,
    inputs: [
      grid,
      [
        [1, 3],
        [2, 0],
      ],
    ],
    outputs: [
      [
        [21, 22],
        [2, 3],
      ],
    ],
  },
  {
    name: "gather with a batch, as take_along_axis",
    types: [["3x4xf32", "3x2xi32"], ["3x2xf32"]],
    body: `%i = stablehlo.reshape %1 : (tensor<3x2xi32>) -> tensor<3x2x1xi32>
      %r = "stablehlo.gather"(%0, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<3x4xf32>, tensor<3x2x1xi32>) -> tensor<3x2xf32>`,
    inputs: [
      grid,
      [
        [3, 0],
        [1, 1],
        [2, 3],
      ],
    ],
    outputs: [
      [
        [3, 0],
        [11, 11],
        [22, 23],
      ],
    ],
  },
  {
    name: "scatter that adds; one index is outside",
    types: [["3x2xf32", "3x1xi32", "3x2xf32"], ["3x2xf32"]],
    body: scattered("%c = stablehlo.add %a, %b : tensor<f32>\n stablehlo.return %c : tensor<f32>"),
    inputs: [
      [
        [1, 1],
        [2, 2],
        [3, 3],
      ],
      [[2], [2], [3]],
      [
        [10, 20],
        [30, 40],
        [50, 60],
      ],
    ],
    outputs: [
      [
        [1, 1],
        [2, 2],
        [43, 63],
      ],
    ],
  },
  {
    name: "scatter that sets; the last of equal indices stays",
    types: [["3x2xf32", "3x1xi32", "3x2xf32"], ["3x2xf32"]],
    body: scattered("stablehlo.return %b : tensor<f32>"),
    inputs: [
      [
        [1, 1],
        [2, 2],
        [3, 3],
      ],
      [[2], [2], [-1]],
      [
        [10, 20],
        [30, 40],
        [50, 60],
      ],
    ],
    outputs: [
      [
        [1, 1],
        [2, 2],
        [30, 40],
      ],
    ],
  },
  {
    name: "slices at positions of a run, clamped",
    types: [
      ["3x4xf32", "i32", "i32"],
      ["2x2xf32", "3x4xf32"],
    ],
    body: `%r = stablehlo.dynamic_slice %0, %1, %2, sizes = [2, 2] : (tensor<3x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x2xf32>
      %s = stablehlo.dynamic_update_slice %0, %r, %2, %1 : (tensor<3x4xf32>, tensor<2x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>`,
    inputs: [grid, 7, 0],
    outputs: [
      [
        [10, 11],
        [20, 21],
      ],
      [
        [0, 1, 10, 11],
        [10, 11, 20, 21],
        [20, 21, 22, 23],
      ],
    ],
  },
  {
    name: "a slice updated at a constant position",
    types: [["4xf32", "2xf32"], ["4xf32"]],
    body: `%c = stablehlo.constant dense<1> : tensor<i32>
      %r = stablehlo.dynamic_update_slice %0, %1, %c : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32>`,
    inputs: [
      [1, 2, 3, 4],
      [8, 9],
    ],
    outputs: [[1, 8, 9, 4]],
  },
  {
    name: "argmax, of which the first counts",
    types: [["2x4xf32"], ["2xi32", "2xf32"]],
    body: extremum("GT"),
    inputs: [
      [
        [1, 5, 5, 0],
        [-3, -4, -2, -2],
      ],
    ],
    outputs: [
      [1, 2],
      [5, -2],
    ],
  },
  {
    name: "argmin",
    types: [["2x4xf32"], ["2xi32", "2xf32"]],
    body: extremum("LT"),
    inputs: [
      [
        [1, 0, 5, 0],
        [-3, -4, -2, -2],
      ],
    ],
    outputs: [
      [1, 1],
      [0, -4],
    ],
  },
  {
    name: "sort with a second operand",
    types: [
      ["4xf32", "4xi32"],
      ["4xf32", "4xi32"],
    ],
    body: compared("LT"),
    inputs: [
      [3, 1, 2, 1],
      [0, 1, 2, 3],
    ],
    outputs: [
      [1, 1, 2, 3],
      [1, 3, 2, 0],
    ],
  },
  {
    name: "sort from the largest",
    types: [
      ["4xf32", "4xi32"],
      ["4xf32", "4xi32"],
    ],
    body: compared("GT"),
    inputs: [
      [3, 1, 2, 1],
      [0, 1, 2, 3],
    ],
    outputs: [
      [3, 2, 1, 1],
      [0, 2, 1, 3],
    ],
  },
  {
    name: "top_k, also of -inf",
    types: [["2x3xf32"], ["2x2xf32", "2x2xi32"]],
    body: "%r, %s = chlo.top_k(%0, k = 2) : tensor<2x3xf32> -> (tensor<2x2xf32>, tensor<2x2xi32>)",
    inputs: [
      [
        [1, 3, 2],
        [-Infinity, 1, -Infinity],
      ],
    ],
    outputs: [
      [
        [3, 2],
        [1, -Infinity],
      ],
      [
        [1, 2],
        [1, 0],
      ],
    ],
  },
  {
    name: "a cumulative product from the end",
    types: [["4xf32"], ["4xf32"]],
    body: `%c = stablehlo.constant dense<1.0> : tensor<f32>
      %r = "stablehlo.reduce_window"(%0, %c) <{padding = dense<[[0, 3]]> : tensor<1x2xi64>, window_dimensions = array<i64: 4>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %d = stablehlo.multiply %a, %b : tensor<f32>
        stablehlo.return %d : tensor<f32>
      }) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>`,
    inputs: [[1, 2, 3, 4]],
    outputs: [[24, 24, 12, 4]],
  },
  {
    name: "a loop of a constant number of iterations",
    types: [["3xf32"], ["3xf32"]],
    body: `%zero = stablehlo.constant dense<0> : tensor<i32>
      %three = stablehlo.constant dense<3> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %l:2 = stablehlo.while(%i = %zero, %x = %0) : tensor<i32>, tensor<3xf32>
      cond {
        %p = stablehlo.compare LT, %i, %three, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %y = stablehlo.dynamic_slice %x, %i, sizes = [1] : (tensor<3xf32>, tensor<i32>) -> tensor<1xf32>
        %z = stablehlo.broadcast_in_dim %y, dims = [0] : (tensor<1xf32>) -> tensor<3xf32>
        %w = stablehlo.add %x, %z : tensor<3xf32>
        %j = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %j, %w : tensor<i32>, tensor<3xf32>
      }
      %r = stablehlo.optimization_barrier %l#1 : tensor<3xf32>`,
    inputs: [[1, 2, 3]],
    outputs: [[12, 13, 14]],
  },
  {
    name: "a branch that a run chooses",
    types: [["i32", "2xf32"], ["2xf32"]],
    body: `%r = "stablehlo.case"(%0) ({
        %a = stablehlo.negate %1 : tensor<2xf32>
        stablehlo.return %a : tensor<2xf32>
      }, {
        %b = stablehlo.add %1, %1 : tensor<2xf32>
        stablehlo.return %b : tensor<2xf32>
      }) : (tensor<i32>) -> tensor<2xf32>`,
    inputs: [5, [1, 2]],
    outputs: [[2, 4]],
  },
  {
    name: "padding between elements, and a part that is cut off",
    types: [["2x2xf32"], ["2x4xf32"]],
    body: `%c = stablehlo.constant dense<7.0> : tensor<f32>
      %r = stablehlo.pad %0, %c, low = [1, 0], high = [-1, 0], interior = [0, 2] : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x4xf32>`,
    inputs: [
      [
        [1, 2],
        [3, 4],
      ],
    ],
    outputs: [
      [
        [7, 7, 7, 7],
        [1, 7, 7, 2],
      ],
    ],
  },
  {
    name: "padding before, between and after elements",
    types: [["2xf32"], ["4xf32", "5xf32"]],
    body: `%c = stablehlo.constant dense<7.0> : tensor<f32>
      %r = stablehlo.pad %0, %c, low = [1], high = [0], interior = [1] : (tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
      %s = stablehlo.pad %0, %c, low = [-1], high = [2], interior = [2] : (tensor<2xf32>, tensor<f32>) -> tensor<5xf32>`,
    inputs: [[1, 2]],
    outputs: [
      [7, 1, 7, 2],
      [7, 7, 2, 7, 7],
    ],
  },
  {
    name: "reverse, slice with a stride, and a transposed broadcast",
    types: [["2x3xf32"], ["3x2xf32", "2x2xf32"]],
    body: `%v = stablehlo.reverse %0, dims = [1] : tensor<2x3xf32>
      %s = stablehlo.slice %v [0:2, 0:3:2] : (tensor<2x3xf32>) -> tensor<2x2xf32>
      %r = "stablehlo.broadcast_in_dim"(%v) <{broadcast_dimensions = array<i64: 1, 0>}> : (tensor<2x3xf32>) -> tensor<3x2xf32>`,
    inputs: [
      [
        [1, 2, 3],
        [4, 5, 6],
      ],
    ],
    outputs: [
      [
        [3, 6],
        [2, 5],
        [1, 4],
      ],
      [
        [3, 1],
        [6, 4],
      ],
    ],
  },
  {
    name: "a contraction of two axes, with a batch in the middle",
    types: [["2x2x2xf32", "2x2x2xf32"], ["2xf32"]],
    body: `%r = stablehlo.dot_general %0, %1, batching_dims = [1] x [2], contracting_dims = [2, 0] x [0, 1] : (tensor<2x2x2xf32>, tensor<2x2x2xf32>) -> tensor<2xf32>`,
    inputs: [
      [
        [
          [1, 2],
          [3, 4],
        ],
        [
          [5, 6],
          [7, 8],
        ],
      ],
      [
        [
          [1, 10],
          [2, 20],
        ],
        [
          [3, 30],
          [4, 40],
        ],
      ],
    ],
    // sum over i, k of a[i, b, k] * w[k, i, b]
    outputs: [[1 * 1 + 2 * 3 + 5 * 2 + 6 * 4, 3 * 10 + 4 * 30 + 7 * 20 + 8 * 40]],
  },
  {
    name: "a convolution of windows side by side",
    types: [["1x2x4x1xf32", "2x2x1x2xf32"], ["1x1x2x2xf32"]],
    body: `%r = stablehlo.convolution(%0, %1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x4x1xf32>, tensor<2x2x1x2xf32>) -> tensor<1x1x2x2xf32>`,
    inputs: [
      [
        [
          [[1], [2], [3], [4]],
          [[5], [6], [7], [8]],
        ],
      ],
      [
        [[[1, 0]], [[10, 0]]],
        [[[100, 1]], [[1000, 2]]],
      ],
    ],
    outputs: [
      [
        [
          [
            [6521, 17],
            [8743, 23],
          ],
        ],
      ],
    ],
  },
  {
    name: "a padding value that a run computes, with gaps",
    types: [["2xf32", "f32"], ["5xf32"]],
    body: `%r = stablehlo.pad %0, %1, low = [1], high = [1], interior = [1] : (tensor<2xf32>, tensor<f32>) -> tensor<5xf32>`,
    inputs: [[3, 4], 9],
    outputs: [[9, 3, 9, 4, 9]],
  },
  {
    name: "unsigned words: a sum that wraps, and a logical shift",
    types: [["2xui32"], ["2xui32", "2xui32"]],
    body: `%c = stablehlo.constant dense<4294967295> : tensor<2xui32>
      %one = stablehlo.constant dense<31> : tensor<2xui32>
      %r = stablehlo.add %0, %c : tensor<2xui32>
      %s = stablehlo.shift_right_logical %0, %one : tensor<2xui32>`,
    inputs: [[5n, 3_000_000_000n]],
    outputs: [
      [4n, 2_999_999_999n],
      [0n, 1n],
    ],
  },
  {
    name: "constants: bits, a list that is an input, and one in even steps",
    types: [["3xf32"], ["3xf32", "3xi32"]],
    body: `%c = stablehlo.constant dense<"0x0000803F000000400000C040"> : tensor<3xf32>
      %r = stablehlo.add %0, %c : tensor<3xf32>
      %s = stablehlo.constant dense<[5, 3, 1]> : tensor<3xi32>`,
    inputs: [[10, 20, 30]],
    outputs: [
      [11, 22, 36],
      [5, 3, 1],
    ],
  },
];

describe("ops", () => {
  it.each(rows)("$name", async (row) => {
    expect(await evaluateOps(row)).toEqual(row.outputs);
  });

  it("a constant of 16 MB of digits", async () => {
    const count = 2_000_000;
    const text = `func.func @main() -> tensor<${count}xf32> {
      %0 = stablehlo.constant dense<"0x${"0000803F".repeat(count)}"> : tensor<${count}xf32>
      return %0 : tensor<${count}xf32>
    }`;
    const { fusion } = await importModel(text);
    expect(fusion.data().ops[0]).toMatchObject({ kind: "Full" });
  });

  it("a function in the generic form, with and without attributes of its results", async () => {
    const text = (more: string): string => `"builtin.module"() ({
      "func.func"() <{function_type = (tensor<2xf32>) -> tensor<2xf32>, sym_name = "main"${more}}> ({
      ^bb0(%arg0: tensor<2xf32>):
        %0 = "stablehlo.negate"(%arg0) : (tensor<2xf32>) -> tensor<2xf32>
        "func.return"(%0) : (tensor<2xf32>) -> ()
      }) : () -> ()
    }) : () -> ()`;
    const namesOf = async (more: string): Promise<unknown> => (await importModel(text(more))).outputs;
    expect(await namesOf("")).toEqual(["out0"]);
    expect(await namesOf(', res_attrs = [{jax.result_info = "result"}]')).toEqual(["result"]);
  });
});
