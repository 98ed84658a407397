/** Manual computations: each collective beside a program on whole tensors that says the same, and what moves. */
import { describe, expect, it } from "vitest";
import { runText } from "./run-text.ts";

const mesh = `sdy.mesh @mesh = <["x"=2, "y"=4]>`;

/** A function of one argument, in parts. `types`: of the whole argument and result, and of their parts. */
function manual(
  body: string,
  [whole, part, result, wholeResult]: readonly [string, string, string, string],
  [into, out]: readonly [string, string],
  axes = `"x", "y"`,
): string {
  return `${mesh}
func.func @main(%arg: tensor<${whole}>) -> tensor<${wholeResult}> {
  %r = sdy.manual_computation(%arg) in_shardings=[<@mesh, ${into}>] out_shardings=[<@mesh, ${out}>] manual_axes={${axes}} (%x: tensor<${part}>) {
    ${body}
    sdy.return %0 : tensor<${result}>
  } : (tensor<${whole}>) -> tensor<${wholeResult}>
  return %r : tensor<${wholeResult}>
}`;
}

function plain(body: string, [whole, result]: readonly [string, string]): string {
  return `func.func @main(%x: tensor<${whole}>) -> tensor<${result}> {
    ${body}
    return %0 : tensor<${result}>
  }`;
}

const same = (type: string): string => plain(`%0 = stablehlo.optimization_barrier %x : tensor<${type}>`, [type, type]);

const adds = `({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    })`;

/** Groups along y and along x, as device ids. */
const alongY = "replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>";
const alongX = "replica_groups = dense<[[0, 4], [1, 5], [2, 6], [3, 7]]> : tensor<4x2xi64>";
const namedY = `replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "y">]>`;

const rows: readonly {
  readonly name: string;
  readonly text: string;
  readonly plain: string;
  readonly moves: string;
}[] = [
  {
    name: "all_gather along named axes",
    text: manual(
      `%0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, ${namedY}}> : (tensor<2x3xf32>) -> tensor<8x3xf32>`,
      ["8x6xf32", "2x3xf32", "8x3xf32", "8x6xf32"],
      [`[{"y"}, {"x"}]`, `[{}, {"x"}]`],
    ),
    plain: same("8x6xf32"),
    moves: "Allgather",
  },
  {
    name: "all_gather along a later axis",
    text: manual(
      `%0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 1 : i64, ${alongX}}> : (tensor<2x3xf32>) -> tensor<2x6xf32>`,
      ["8x6xf32", "2x3xf32", "2x6xf32", "8x6xf32"],
      [`[{"y"}, {"x"}]`, `[{"y"}, {}]`],
    ),
    plain: same("8x6xf32"),
    moves: "Allgather",
  },
  {
    name: "all_reduce of parts that differ along both axes, along one",
    text: manual(
      `%0 = "stablehlo.all_reduce"(%x) <{${alongY}}> ${adds} : (tensor<1x3xf32>) -> tensor<1x3xf32>`,
      ["4x6xf32", "1x3xf32", "1x3xf32", "1x6xf32"],
      [`[{"y"}, {"x"}]`, `[{}, {"x"}]`],
    ),
    plain: plain(
      `%c = stablehlo.constant dense<0.0> : tensor<f32>
         %s = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [0] : (tensor<4x6xf32>, tensor<f32>) -> tensor<6xf32>
         %0 = stablehlo.reshape %s : (tensor<6xf32>) -> tensor<1x6xf32>`,
      ["4x6xf32", "1x6xf32"],
    ),
    moves: "Allreduce",
  },
  {
    name: "all_reduce of parts that do not differ",
    text: manual(
      `%0 = "stablehlo.all_reduce"(%x) <{${alongY}}> ${adds} : (tensor<2x3xf32>) -> tensor<2x3xf32>`,
      ["4x3xf32", "2x3xf32", "2x3xf32", "4x3xf32"],
      [`[{"x"}, {}]`, `[{"x"}, {}]`],
    ),
    plain: plain(
      `%c = stablehlo.constant dense<4.0> : tensor<4x3xf32>
         %0 = stablehlo.multiply %x, %c : tensor<4x3xf32>`,
      ["4x3xf32", "4x3xf32"],
    ),
    moves: "",
  },
  {
    name: "reduce_scatter",
    text: manual(
      `%0 = "stablehlo.reduce_scatter"(%x) <{scatter_dimension = 1 : i64, ${alongY}}> ${adds} : (tensor<1x8xf32>) -> tensor<1x2xf32>`,
      ["4x16xf32", "1x8xf32", "1x2xf32", "1x16xf32"],
      [`[{"y"}, {"x"}]`, `[{}, {"x", "y"}]`],
    ),
    plain: plain(
      `%c = stablehlo.constant dense<0.0> : tensor<f32>
         %s = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [0] : (tensor<4x16xf32>, tensor<f32>) -> tensor<16xf32>
         %0 = stablehlo.reshape %s : (tensor<16xf32>) -> tensor<1x16xf32>`,
      ["4x16xf32", "1x16xf32"],
    ),
    moves: "ReduceScatter",
  },
  {
    name: "all_to_all",
    text: manual(
      `%0 = "stablehlo.all_to_all"(%x) <{split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 4 : i64, ${alongY}}> : (tensor<2x8xf32>) -> tensor<8x2xf32>`,
      ["8x16xf32", "2x8xf32", "8x2xf32", "8x16xf32"],
      [`[{"y"}, {"x"}]`, `[{}, {"x", "y"}]`],
    ),
    plain: same("8x16xf32"),
    moves: "AllToAll",
  },
  {
    name: "collective_permute, from which some get nothing",
    text: manual(
      `%0 = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [4, 5], [5, 6], [6, 7]]> : tensor<6x2xi64>}> : (tensor<2x3xf32>) -> tensor<2x3xf32>`,
      ["8x6xf32", "2x3xf32", "2x3xf32", "8x6xf32"],
      [`[{"y"}, {"x"}]`, `[{"y"}, {"x"}]`],
    ),
    plain: plain(
      `%c = stablehlo.constant dense<0.0> : tensor<f32>
         %0 = stablehlo.pad %x, %c, low = [2, 0], high = [-2, 0], interior = [0, 0] : (tensor<8x6xf32>, tensor<f32>) -> tensor<8x6xf32>`,
      ["8x6xf32", "8x6xf32"],
    ),
    // Braid has no permute of the parts of one tensor.
    moves: "Allgather",
  },
  {
    name: "the position along an axis",
    text: manual(
      `%p = stablehlo.partition_id : tensor<ui32>
         %four = stablehlo.constant dense<4> : tensor<ui32>
         %m = stablehlo.remainder %p, %four : tensor<ui32>
         %i = stablehlo.convert %m : (tensor<ui32>) -> tensor<i32>
         %f = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
         %b = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<1x3xf32>
         %0 = stablehlo.multiply %x, %b : tensor<1x3xf32>`,
      ["4x6xf32", "1x3xf32", "1x3xf32", "4x6xf32"],
      [`[{"y"}, {"x"}]`, `[{"y"}, {"x"}]`],
    ),
    plain: plain(
      `%i = stablehlo.iota dim = 0 : tensor<4x6xf32>
         %0 = stablehlo.multiply %x, %i : tensor<4x6xf32>`,
      ["4x6xf32", "4x6xf32"],
    ),
    moves: "",
  },
  {
    name: "a slice at the position along an axis",
    text: manual(
      `%p = stablehlo.partition_id : tensor<ui32>
         %four = stablehlo.constant dense<4> : tensor<ui32>
         %m = stablehlo.remainder %p, %four : tensor<ui32>
         %i = stablehlo.convert %m : (tensor<ui32>) -> tensor<i32>
         %two = stablehlo.constant dense<2> : tensor<i32>
         %start = stablehlo.multiply %i, %two : tensor<i32>
         %zero = stablehlo.constant dense<0> : tensor<i32>
         %0 = stablehlo.dynamic_slice %x, %start, %zero, sizes = [2, 3] : (tensor<8x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>`,
      ["8x6xf32", "8x3xf32", "2x3xf32", "8x6xf32"],
      [`[{}, {"x"}]`, `[{"y"}, {"x"}]`],
    ),
    plain: same("8x6xf32"),
    moves: "",
  },
  {
    name: "a branch that each device chooses",
    text: manual(
      `%p = stablehlo.partition_id : tensor<ui32>
         %four = stablehlo.constant dense<4> : tensor<ui32>
         %m = stablehlo.divide %p, %four : tensor<ui32>
         %i = stablehlo.convert %m : (tensor<ui32>) -> tensor<i32>
         %0 = "stablehlo.case"(%i) ({
           stablehlo.return %x : tensor<1x3xf32>
         }, {
           %n = stablehlo.negate %x : tensor<1x3xf32>
           stablehlo.return %n : tensor<1x3xf32>
         }) : (tensor<i32>) -> tensor<1x3xf32>`,
      ["4x6xf32", "1x3xf32", "1x3xf32", "4x6xf32"],
      [`[{"y"}, {"x"}]`, `[{"y"}, {"x"}]`],
    ),
    plain: plain(
      `%i = stablehlo.iota dim = 1 : tensor<4x6xi32>
         %three = stablehlo.constant dense<3> : tensor<4x6xi32>
         %m = stablehlo.compare LT, %i, %three : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi1>
         %n = stablehlo.negate %x : tensor<4x6xf32>
         %0 = stablehlo.select %m, %x, %n : tensor<4x6xi1>, tensor<4x6xf32>`,
      ["4x6xf32", "4x6xf32"],
    ),
    moves: "",
  },
  {
    name: "one manual axis, and one that propagation has",
    text: manual(
      `%c = stablehlo.constant dense<0.0> : tensor<f32>
         %s = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
         %0 = "stablehlo.all_gather"(%s) <{all_gather_dim = 0 : i64, ${alongX}}> : (tensor<4xf32>) -> tensor<8xf32>`,
      ["8x8xf32", "4x8xf32", "8xf32", "8xf32"],
      [`[{"x"}, {"y"}]`, `[{}]`],
      `"x"`,
    ),
    plain: plain(
      `%c = stablehlo.constant dense<0.0> : tensor<f32>
         %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>`,
      ["8x8xf32", "8xf32"],
    ),
    moves: "Allreduce Allgather",
  },
];

describe("manual computations", () => {
  it.each(rows)("$name: $moves", async ({ text, plain: whole, moves }) => {
    expect(await runText(text, whole)).toBe(moves);
  });
});
