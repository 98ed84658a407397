/** Recorded files of torch.export: names, sizes and lines, and the values that PyTorch computed. */
import { describe, expect, it } from "vitest";
import { evaluateFusion } from "../../../src/oracle/evaluate.ts";
import { expectRecorded, inputsOf, readTorch, recorded, withGradients } from "./torch-files.ts";

describe("mlp", () => {
  it("computes what PyTorch computed, within the oracle's bounds", async () => {
    const [model, io] = [readTorch("mlp"), await recorded("mlp")];
    const { outputs, bounds } = evaluateFusion(model.fusion.data(), inputsOf(model, io));
    expectRecorded("y", outputs[0], io);
    const wanted = Array.from(io.get("y")?.data ?? [], Number);
    expect(wanted.every((element, i) => Math.abs(element - Number(outputs[0]?.data[i])) <= (bounds[0]?.[i] ?? 0))).toBe(
      true,
    );
  });

  it("keeps the names of parameters, modules and lines", () => {
    const { inputs, outputs, fusion } = readTorch("mlp");
    expect(inputs.map(({ name, kind }) => `${kind} ${name}`)).toEqual([
      "user x",
      "parameter up.weight",
      "parameter up.bias",
      "parameter down.weight",
      "parameter down.bias",
    ]);
    expect(outputs.map(({ name }) => name)).toEqual(["y"]);
    const { tensors, ops } = fusion.data();
    expect(ops.map(({ output }) => tensors[output]?.origin)).toEqual(
      ["up/linear", "gelu", "down/linear_1", "add"].map((name) => ({
        name,
        source: { path: "train/model.py", line: 50, column: 1 },
      })),
    );
  });
});

it("a symbolic size has PyTorch's name, range and example", async () => {
  const model = readTorch("mlp-dynamic");
  expect([...model.sizes]).toEqual([["i2", { name: "s27", min: 2, max: 512, example: 16 }]]);
  const io = await recorded("mlp");
  expectRecorded("y", evaluateFusion(model.fusion.data(), inputsOf(model, io)).outputs[0], io);
});

it("a block's gradients are those that PyTorch recorded", async () => {
  const [model, io] = [withGradients(readTorch("own-block-grads"), "dy"), await recorded("own-block-grads")];
  const { outputs } = evaluateFusion(model.fusion.data(), inputsOf(model, io));
  expect(model.outputs.map(({ name }) => name).toSorted()).toEqual(
    [...io.keys()].filter((name) => name === "y" || name.startsWith("grad.")).toSorted(),
  );
  model.outputs.forEach(({ name }, i) => {
    expectRecorded(name, outputs[i], io);
  });
});

it("regions under no_grad and without autocast stand in place of their calls, and no derivative passes the first", async () => {
  const [model, io] = [withGradients(readTorch("no-grad"), "dy"), await recorded("no-grad")];
  const { outputs } = evaluateFusion(model.fusion.data(), inputsOf(model, io));
  expect(model.outputs.map(({ name }) => name)).toEqual(["y", "grad.up.weight"]);
  model.outputs.forEach(({ name }, i) => {
    expectRecorded(name, outputs[i], io);
  });
});

it("masks are seen, positions folded and heads grouped", () => {
  const { fusion, inputs } = readTorch("llama");
  const { ops } = fusion.data();
  expect(ops.flatMap((op) => (op.kind === "Sdpa" ? [op.causal] : []))).toEqual(["topLeft", "topLeft"]);
  // The tables of cosines and sines; all else that is constant is no input.
  expect(inputs.filter(({ kind }) => kind !== "parameter").map(({ name }) => name)).toEqual([
    "x",
    "folded/mul",
    "folded/mul_1",
  ]);
  expect(ops.some((op) => op.kind === "Expand")).toBe(true);
});
