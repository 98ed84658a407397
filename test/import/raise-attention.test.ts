/**
 * Attention that JAX 0.10.2 printed as ops, with its results: which of it is one op, and which stays as it is.
 *
 * The results of attention.mlir, in order: dot_product_attention with grouped heads and a window, with a triangle, and
 * with a scale; by hand, of [b, h, L, d] with a triangle; by hand, of grouped heads and a window; one query; the last
 * queries. These stay ops: a mask of the run; probabilities that are a result, with their product; a softmax along
 * queries; a first row that sees no key.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { importModel } from "@braid-compiler/braid";
import { withoutDeadOps } from "../../src/ir/fusion-data.ts";
import { runJax } from "./run-jax.ts";

const text = readFileSync(path.join(import.meta.dirname, "jax", "attention.mlir"), "utf8");

async function kinds(from: string, to: string): Promise<readonly string[]> {
  const { fusion } = await importModel(text.replaceAll(from, to), { file: "attention.mlir" });
  return withoutDeadOps(fusion.data()).ops.flatMap((op) =>
    op.kind === "Sdpa" ? [`${op.causal} ${op.window}`] : op.kind === "Unary" && op.op === "exp" ? ["exp"] : [],
  );
}

const asOps = ["exp", "exp", "exp", "exp"];
const found = ["topLeft 5", "topLeft null", "null null", "topLeft null", "topLeft 7", "null null", "bottomRight null"];

it("is one op with the mask that its arithmetic makes", async () => {
  expect(await kinds("", "")).toEqual([...found, ...asOps]);
});

it("gives what JAX computed", async () => {
  expect(await runJax("attention")).toBe("");
});

it("stays ops where hidden scores are numbers like others", async () => {
  // Of the third by hand, -1e10; of those that stay ops, too.
  const others = await kinds("-1.000000e+10", "-1.000000e+01");
  expect(others.filter((kind) => kind === "exp")).toHaveLength(5);
});
