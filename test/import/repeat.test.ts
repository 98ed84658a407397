/** Lines that are read once for all of their form make the same program as lines that are each read by itself. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { importModel } from "@braid-compiler/braid";

/** No two lines with a location of their own are alike. */
function located(text: string): string {
  return text.replaceAll(/^ *%.*[^{(]$/gmu, (line, offset) => `${line} loc("${offset}")`);
}

async function programOf(text: string): Promise<unknown> {
  const { fusion, inputs, outputs, devices } = await importModel(text, { file: "model.mlir" });
  return { data: fusion.data(), inputs, outputs, devices };
}

const swapped = `func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.subtract %x, %x : tensor<4xf32>
  %1 = stablehlo.subtract %x, %y : tensor<4xf32>
  %2 = stablehlo.subtract %y, %1 : tensor<4xf32>
  %3 = stablehlo.subtract %2, %2 : tensor<4xf32>
  %4 = stablehlo.add %0, %3 : tensor<4xf32>
  return %1, %2, %4 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
`;

const repeating = `sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<4xf32>, %y: tensor<4x4xf32>, %z: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<4xf32>) -> tensor<4x4xf32>
  %1 = stablehlo.tanh %0 : tensor<4x4xf32>
  %2 = stablehlo.tanh %y : tensor<4x4xf32>
  %3 = stablehlo.tanh %z : tensor<4x4xf32>
  %4 = sdy.sharding_constraint %2 <@mesh, [{"x"}, {}]> : tensor<4x4xf32>
  %5 = sdy.sharding_constraint %3 <@mesh, [{"x"}, {}]> : tensor<4x4xf32>
  %6 = stablehlo.add %1, %4 : tensor<4x4xf32>
  return %1, %6, %5 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}
`;

describe("lines like others", () => {
  it.each(["mlp-grad", "embed-xent", "gpt-block-train", "llama-block-sp", "shard-map-moe", "decode-kv"])(
    "%s",
    async (name) => {
      const text = readFileSync(path.join(import.meta.dirname, `jax/${name}.mlir`), "utf8");
      expect(await programOf(text)).toEqual(await programOf(located(text)));
    },
  );

  it.each([
    ["operands that are one tensor, or others", swapped],
    ["operands that repeat along an axis, and shardings", repeating],
  ])("%s", async (_, text) => {
    expect(await programOf(text)).toEqual(await programOf(located(text)));
  });

  it("operands of another type are refused as ever", async () => {
    const wrong = swapped.replace("%2 = stablehlo.subtract %y, %1", "%2 = stablehlo.subtract %y, %i");
    await expect(importModel(wrong)).rejects.toThrow(/contradicts its types/u);
  });
});
