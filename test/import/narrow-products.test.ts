/**
 * Products of 16-bit floats that JAX 0.10.2 asks for in float (`preferred_element_type`), and rounds. Of
 * float-products.mlir, four are rounded to the dtype of their operands alone: a linear, one of a batch that is then
 * transposed, one without rows, and one of half. These stay in float: one that is summed, too; one that something is
 * added to; a result; one that is rounded to another dtype. All of them read 16 bits.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { importModel } from "@braid-compiler/braid";
import { withoutDeadOps } from "../../src/ir/fusion-data.ts";
import { runJax } from "./run-jax.ts";

/** Of the first operand and of the result of each. */
async function dtypesOfProducts(text: string): Promise<readonly string[]> {
  const { fusion } = await importModel(text, { file: "products.mlir" });
  const { ops, tensors } = withoutDeadOps(fusion.data());
  const dtypeOf = (id: number | undefined): string => tensors[id ?? -1]?.dtype ?? "";
  return ops.flatMap((op) => (op.kind === "Matmul" ? [`${dtypeOf(op.inputs[0])} ${dtypeOf(op.output)}`] : []));
}

const text = readFileSync(path.join(import.meta.dirname, "jax", "float-products.mlir"), "utf8");

it("are matmuls of their operands' dtype where they are rounded to it", async () => {
  const narrow = ["bfloat16 bfloat16", "bfloat16 bfloat16", "bfloat16 bfloat16", "half half"];
  expect(await dtypesOfProducts(text)).toEqual([...narrow, ...narrow.map(() => "bfloat16 float")]);
});

it("give what JAX computed", async () => {
  expect(await runJax("float-products")).toBe("");
});

it("stay in float on several devices, which add their parts", async () => {
  const module = (mesh: string, sharding: string): string => `module @m {
  ${mesh}
  func.func public @main(%arg0: tensor<4x8xbf16>${sharding}, %arg1: tensor<8x6xbf16>) -> tensor<4x6xbf16> {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<4x8xbf16>, tensor<8x6xbf16>) -> tensor<4x6xf32>
    %1 = stablehlo.convert %0 : (tensor<4x6xf32>) -> tensor<4x6xbf16>
    return %1 : tensor<4x6xbf16>
  }
}`;
  const cut = ' {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}';
  expect(await dtypesOfProducts(module('sdy.mesh @mesh = <["x"=2]>', cut))).toEqual(["bfloat16 float"]);
  expect(await dtypesOfProducts(module("", ""))).toEqual(["bfloat16 bfloat16"]);
});

it("read operands that are widened as they were, also transposed", async () => {
  const module = (dtype: string): string => `module @m {
  func.func public @main(%arg0: tensor<8x4xbf16>, %arg1: tensor<8x6x${dtype}>) -> tensor<4x6xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<8x4xbf16>) -> tensor<8x4xf32>
    %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
    %2 = stablehlo.convert %arg1 : (tensor<8x6x${dtype}>) -> tensor<8x6xf32>
    %3 = stablehlo.dot_general %1, %2, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
    return %3 : tensor<4x6xf32>
  }
}`;
  expect(await dtypesOfProducts(module("bf16"))).toEqual(["bfloat16 float"]);
  expect(await dtypesOfProducts(module("f16"))).toEqual(["float float"]);
});
