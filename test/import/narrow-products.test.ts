/**
 * Products of 16-bit floats that JAX 0.10.2 asks for in float (`preferred_element_type`), and rounds. Of
 * float-products.mlir, four are rounded to the dtype of their operands alone: a linear, one of a batch that is then
 * transposed, one without rows, and one of half. These stay in float: one that is summed, too; one that something is
 * added to; a result; one that is rounded to another dtype.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { importModel } from "@braid-compiler/braid";
import { withoutDeadOps } from "../../src/ir/fusion-data.ts";
import { runJax } from "./run-jax.ts";

async function dtypesOfProducts(text: string): Promise<readonly (string | undefined)[]> {
  const { fusion } = await importModel(text, { file: "products.mlir" });
  const { ops, tensors } = withoutDeadOps(fusion.data());
  return ops.flatMap((op) => (op.kind === "Matmul" ? [tensors[op.output]?.dtype] : []));
}

const text = readFileSync(path.join(import.meta.dirname, "jax", "float-products.mlir"), "utf8");

it("are matmuls of their operands' dtype where they are rounded to it", async () => {
  const narrow = ["bfloat16", "bfloat16", "bfloat16", "half"];
  expect(await dtypesOfProducts(text)).toEqual([...narrow, "float", "float", "float", "float"]);
});

it("give what JAX computed", async () => {
  expect(await runJax("float-products")).toBe("");
});

it("stay in float on several devices, which add their parts", async () => {
  const module = (sharding: string): string => `module @m {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4x8xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {${sharding}}]>}, %arg1: tensor<8x6xbf16>) -> tensor<4x6xbf16> {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<4x8xbf16>, tensor<8x6xbf16>) -> tensor<4x6xf32>
    %1 = stablehlo.convert %0 : (tensor<4x6xf32>) -> tensor<4x6xbf16>
    return %1 : tensor<4x6xbf16>
  }
}`;
  expect(await dtypesOfProducts(module('"x"'))).toEqual(["float"]);
  expect(await dtypesOfProducts(module("").replace('  sdy.mesh @mesh = <["x"=2]>\n', "").replace(/ \{sdy.*\}, %/u, ", %"))).toEqual(["bfloat16"]); // prettier-ignore
});
