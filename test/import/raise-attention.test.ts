/**
 * Attention that JAX 0.10.2 printed as ops, with its results: which of it is one op, and which stays as it is.
 *
 * The results of attention.mlir, in order: dot_product_attention with grouped heads and a window, with a triangle, and
 * with a scale; by hand, of [b, h, L, d] with a triangle; by hand, of grouped heads and a window; one query; the last
 * queries; a mask of the run. These stay ops: probabilities that are a result, with their product; a softmax along
 * queries. A first row that sees no key has a mask that is added.
 *
 * attention-bias.mlir: of grouped heads, with a bias; with a triangle and padding, which leaves rows without a key; padding
 * as -1e10 that is added; two layers with one mask; a bias and a triangle; these and padding; of bfloat16, with a bias of
 * float; results and gradients with a triangle, padding and a bias, and of grouped heads. These stay ops: a bias that is
 * scaled; a number that is added; gradients with -1e9 that is added, and of the bias.
 *
 * attention-grads.mlir has results and gradients of q, k and v: dot_product_attention with a window; by hand, with a
 * triangle; by hand, of grouped heads; with the derivative of softmax that its result gives. These stay ops: the gradient
 * without that of the sum; probabilities that something else reads.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { importModel } from "@braid-compiler/braid";
import { withoutDeadOps } from "../../src/ir/fusion-data.ts";
import { runJax } from "./run-jax.ts";

function textOf(name: string): string {
  return readFileSync(path.join(import.meta.dirname, "jax", `${name}.mlir`), "utf8");
}

async function kinds(text: string): Promise<readonly string[]> {
  const { fusion } = await importModel(text, { file: "attention.mlir" });
  return withoutDeadOps(fusion.data()).ops.flatMap((op) => {
    if (op.kind === "SdpaBackward") return ["gradient"];
    return op.kind === "Sdpa" ? [`${op.causal} ${op.window}`] : op.kind === "Unary" && op.op === "exp" ? ["exp"] : [];
  });
}

const asOps = ["exp", "exp"];
const found = [
  "topLeft 5",
  "topLeft null",
  "null null",
  "topLeft null",
  "topLeft 7",
  "null null",
  "bottomRight null",
  "null null",
];

describe("attention", () => {
  it("is one op with the mask that its arithmetic makes", async () => {
    expect(await kinds(textOf("attention"))).toEqual([...found, ...asOps, "null null"]);
  });

  it("gives what JAX computed", async () => {
    expect(await runJax("attention")).toBe("");
  });

  it("stays ops where hidden scores are numbers like others", async () => {
    // Of the third by hand, -1e10; of those that stay ops, too.
    const others = await kinds(textOf("attention").replaceAll("-1.000000e+10", "-1.000000e+01"));
    expect(others.filter((kind) => kind === "exp")).toHaveLength(5);
    const added = await kinds(textOf("attention-bias").replaceAll("-1.000000e+10", "-1.000000e+01"));
    expect(added.filter((kind) => kind === "exp")).toHaveLength(9);
  });
});

describe("what is added to scores", () => {
  it("is an operand, beside what rows see by their positions", async () => {
    const hand = ["null null", "topLeft null", "topLeft null", "topLeft null", "topLeft null"];
    const both = ["topLeft null", "gradient", "topLeft null", "gradient"];
    const all = ["null null", "topLeft null", ...hand, "topLeft null", ...both];
    expect(await kinds(textOf("attention-bias"))).toEqual([...all, "exp", "exp", "exp", "exp"]);
  });

  it("is made once for layers of one mask", async () => {
    const { fusion } = await importModel(textOf("attention-bias"), { file: "attention.mlir" });
    const biases = fusion.data().ops.flatMap((op) => (op.kind === "Sdpa" ? [op.inputs[3]] : []));
    expect(biases[3]).toBe(biases[4]);
    expect(biases[3]).not.toBe(biases[1]);
  });

  it("gives what JAX computed", async () => {
    expect(await runJax("attention-bias")).toBe("");
  });
});

describe("gradients of attention", () => {
  it("are one op", async () => {
    const both = ["topLeft 5", "topLeft null", "topLeft null", "null null"].flatMap((kind) => [kind, "gradient"]);
    expect(await kinds(textOf("attention-grads"))).toEqual([...both, "exp", "exp"]);
  });

  it("give what JAX computed", async () => {
    expect(await runJax("attention-grads")).toBe("");
  });

  it("stay ops where they are of another function", async () => {
    // The sum of e dP / z^2 becomes its double: no gradient of softmax.
    const text = textOf("attention-grads");
    const line =
      /(%\d+ = stablehlo\.)negate (%\d+) : (tensor<2x2x24x24x1xf32>|tensor<2x2x2x24x1xf32>|tensor<\d+x\d+x\d+x\d+x1xf32>)/u;
    expect(text).toMatch(line);
    const changed = await kinds(text.replace(line, "$1add $2, $2 : $3"));
    expect(changed.filter((kind) => kind === "gradient")).toHaveLength(3);
    expect(changed.filter((kind) => kind === "exp")).toHaveLength(3);
  });
});
