/** Shardy's constructs: each program beside one without them, and what moves. */
import { describe, expect, it } from "vitest";
import { importModel } from "@braid-compiler/braid";
import { runText } from "./run-text.ts";

interface Row {
  readonly name: string;
  /** The mesh, and `@main` with shardings in it. */
  readonly mesh: string;
  readonly main: string;
  readonly moves: string;
}

/** Every annotation between braces or after `<@` is left out. */
function withoutShardings(text: string): string {
  return text
    .replaceAll(/ \{sdy\.sharding = #sdy\.sharding(?:_per_value)?<(?:[^<>]|<[^<>]*>)*>\}/gu, "")
    .replaceAll(/sdy\.(?:sharding_constraint|reshard) (%\w+) <@mesh[^>]*> :/gu, "stablehlo.optimization_barrier $1 :");
}

const product = (x: string, w: string, y: string): string => `
func.func @main(%x: tensor<8x4xf32>${x}, %w: tensor<4x16xf32>${w}) -> (tensor<8x16xf32>${y}) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}`;

const annotated = (axes: string, mesh = "@mesh"): string => ` {sdy.sharding = #sdy.sharding<${mesh}, ${axes}>}`;

const moved = (op: string, type: string, from: string, mesh = "@mesh"): string => `
func.func @main(%x: ${type}${annotated(from, mesh)}) -> ${type} {
  ${op}
  return %0 : ${type}
}`;

const [one, two] = [`sdy.mesh @mesh = <["x"=4]>`, `sdy.mesh @mesh = <["x"=2, "y"=2]>`];

const rows: readonly Row[] = [
  {
    name: "a contracted axis on both sides",
    mesh: one,
    main: product(annotated(`[{}, {"x"}]`), annotated(`[{"x"}, {}]`), annotated(`[{}, {}]`)),
    moves: "Allreduce",
  },
  {
    name: "a contracted axis on both sides, whose result is cut",
    mesh: one,
    main: product(annotated(`[{}, {"x"}]`), annotated(`[{"x"}, {}]`), annotated(`[{"x"}, {}]`)),
    moves: "ReduceScatter",
  },
  {
    name: "axes of two dimensions, with priorities and open ends",
    mesh: two,
    main: product(annotated(`[{"x", ?}p1, {?}]`), annotated(`[{}, {"y"}p0]`), annotated(`[{"x"}, {"y"}]`)),
    moves: "",
  },
  {
    name: "an open sharding, which propagation fills",
    mesh: one,
    main: product(annotated(`[{"x"}, {}]`), annotated(`[{?}, {?}]`), annotated(`[{"x"}, {?}]`)),
    moves: "",
  },
  {
    name: "parts of an axis on two axes of the tensor",
    mesh: one,
    main: product(annotated(`[{"x":(1)2}, {"x":(2)2}]`), annotated(`[{"x":(2)2}, {}]`), annotated(`[{"x":(1)2}, {}]`)),
    moves: "Allreduce",
  },
  {
    name: "two dimensions on one axis, and a constraint to its transpose",
    mesh: two,
    main: moved(
      '%0 = sdy.sharding_constraint %x <@mesh, [{}, {"x", "y"}]> : tensor<8x16xf32>',
      "tensor<8x16xf32>",
      `[{"x", "y"}, {}]`,
    ),
    moves: "AllToAllV",
  },
  {
    name: "a reshard to every device",
    mesh: `sdy.mesh @mesh = <["x"=4], device_ids=[2, 0, 3, 1]>`,
    main: moved("%0 = sdy.reshard %x <@mesh, [{}]> : tensor<8xf32>", "tensor<8xf32>", `[{"x"}]`),
    moves: "Allgather",
  },
  {
    name: "devices in another order",
    mesh: `sdy.mesh @mesh = <["x"=2, "y"=2]>\nsdy.mesh @mesh_other = <["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>`,
    main: moved('%0 = sdy.reshard %x <@mesh_other, [{"x", "y"}]> : tensor<8xf32>', "tensor<8xf32>", `[{"x", "y"}]`),
    moves: "CollectivePermute",
  },
  {
    name: "an axis of one device, and one that no sharding names",
    mesh: `sdy.mesh @mesh = #sdy.mesh<["one"=1, "x"=2, "rest"=2]>`,
    main: moved('%0 = sdy.reshard %x <@mesh, [{"one"}]> : tensor<8xf32>', "tensor<8xf32>", `[{"x", "one"}]`),
    moves: "Allgather",
  },
  {
    name: "an argument that only an op without a use reads",
    mesh: one,
    main: `func.func @main(%x: tensor<8xf32>${annotated('[{"x"}]')}, %i: tensor<2xi32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32>
  %1 = "stablehlo.gather"(%0, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<8xf32>, tensor<2xi32>) -> tensor<2xf32>
  return %0 : tensor<8xf32>
}`,
    moves: "",
  },
  {
    name: "a number that is used beside sharded values, and counted on, as the step of a training loop",
    mesh: one,
    main: `func.func @main(%x: tensor<8xf32>${annotated('[{"x"}]')}, %step: tensor<f32>) -> (tensor<8xf32>, tensor<f32>) {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %next = stablehlo.add %step, %one : tensor<f32>
  %wide = stablehlo.broadcast_in_dim %step, dims = [] : (tensor<f32>) -> tensor<8xf32>
  %0 = stablehlo.multiply %x, %wide : tensor<8xf32>
  return %0, %next : tensor<8xf32>, tensor<f32>
}`,
    moves: "",
  },
  {
    name: "an argument without annotation that becomes a number, and one beside what that reaches",
    mesh: one,
    main: `func.func @main(%x: tensor<8xf32>${annotated('[{"x"}]')}, %n: tensor<1xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>) -> (tensor<8xf32>, tensor<16xf32>) {
  %number = stablehlo.reshape %n : (tensor<1xf32>) -> tensor<f32>
  %wide = stablehlo.broadcast_in_dim %number, dims = [] : (tensor<f32>) -> tensor<8xf32>
  %1 = stablehlo.multiply %x, %wide : tensor<8xf32>
  %2 = stablehlo.add %1, %b : tensor<8xf32>
  %3 = stablehlo.concatenate %b, %c, dim = 0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
  return %2, %3 : tensor<8xf32>, tensor<16xf32>
}`,
    moves: "",
  },
  {
    name: "floats of 8 bits in reverse, which no device can add",
    mesh: one,
    main: `func.func @main(%x: tensor<8x2xf8E4M3FN>${annotated('[{"x"}, {}]')}) -> (tensor<8x2xf8E4M3FN>${annotated('[{"x"}, {}]')}) {
  %0 = stablehlo.reverse %x, dims = [0] : tensor<8x2xf8E4M3FN>
  return %0 : tensor<8x2xf8E4M3FN>
}`,
    moves: "Allgather",
  },
];

describe("shardings", () => {
  it.each(rows)("$name: $moves", async ({ mesh, main, moves }) => {
    expect(await runText(`${mesh}\n${main}`, withoutShardings(main))).toBe(moves);
  });

  it("of an op's own results place them", async () => {
    const own = ` {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}`;
    const main = `
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x${own} : tensor<8xf32>
  return %0 : tensor<8xf32>
}`;
    const { fusion, devices } = await importModel(`${one}\n${main}`);
    expect([devices, String(fusion.outputs[0])]).toEqual([
      4,
      "T1_g_float[ideviceIdx.x2{4}, iS3{2}] (DeviceMesh{0 1 2 3})",
    ]);
  });
});
