/** The forward and the backward pass of a block as two programs: together they give PyTorch's gradients. */
import { lower, print } from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import { halfOfModel } from "../../../src/cli/program/program-of-model.ts";
import { MultiDeviceExecutor } from "../../../src/executor/multi-device-executor.ts";
import { importModel } from "../../../src/import/import-model.ts";
import type { ImportedModel } from "../../../src/import/model.ts";
import { layoutOf } from "../../../src/ir/layout.ts";
import type { Tensor } from "../../../src/numerics/tensor/host-tensor.ts";
import { at } from "../../../src/support/invariant.ts";
import { DiagnosticError } from "../../../src/diagnostics/diagnostic.ts";
import { blockPlan, halvesOfBlock, parametersOfBlock } from "./block-halves.ts";
import { expectRecorded, recorded, torchFile } from "./torch-files.ts";

async function run(model: ImportedModel, devices: number, known: Map<string, Tensor>): Promise<void> {
  const executor = await MultiDeviceExecutor.create(model.fusion, { devices });
  try {
    const given = model.inputs.map(({ names: [name = ""], value }) => value ?? known.get(name) ?? at([], 0));
    const found = await executor.run(given);
    model.outputs.forEach((name, i) => known.set(name, at(found, i)));
  } finally {
    await executor.close();
  }
}

describe.each([
  ["tensor parallel", "Replicate()"],
  ["sequence parallel", "Shard(1)"],
] as const)("a block on 2 devices, %s", (_, rows) => {
  it("gives the recorded gradients", async () => {
    const io = await recorded("own-block-grads");
    const { forward, backward } = await halvesOfBlock(2, rows, "minimal");
    const known = new Map(io);
    known.delete("y");
    await run(forward, 2, known);
    await run(backward, 2, known);
    expect(backward.outputs).toEqual(["x", ...parametersOfBlock].map((name) => `grad.${name}`));
    for (const name of ["y", ...parametersOfBlock.map((each) => `grad.${each}`)]) {
      expectRecorded(name, known.get(name), io);
    }
  });

  it("has less to save the less it may", async () => {
    const counts = await Promise.all(
      (["all", "minimal", 0] as const).map(async (save) => {
        const { forward } = await halvesOfBlock(2, rows, save);
        return forward.outputs.filter((name) => name.startsWith("saved.")).length;
      }),
    );
    expect(counts).toEqual([13, 8, 0]);
  });
});

it.each([2, 4])("%i devices share rows between the linear maps of a block that has whole ones", async (devices) => {
  const io = await recorded("own-block-grads");
  const plan = blockPlan(devices, "Replicate()", true);
  const model = await importModel(torchFile("own-block-grads"), { plan, fold: false });
  const known = new Map(io);
  known.delete("y");
  await run(model, devices, known);
  expectRecorded("y", known.get("y"), io);
  const moved = print(lower(model.fusion)).match(/type=[A-Z]\w+/gu);
  expect(new Set(moved)).toEqual(new Set(["type=ReduceScatter", "type=Allgather"]));
});

it("a cotangent lies like its output", async () => {
  const { backward } = await halvesOfBlock(4, "Shard(1)", "minimal");
  const place = (name: string): unknown => {
    const i = backward.inputs.findIndex(({ names }) => names[0] === name);
    return layoutOf(at(backward.fusion.inputs, i).data())?.axes;
  };
  expect(place("dy")).toEqual(place("x"));
});

it("wrt chooses the gradients, and refuses another name with the nearest one", async () => {
  const options = { file: "block.pt2", plan: blockPlan(2, "Replicate()"), gradients: "dy" };
  const model = await importModel(torchFile("own-block-grads"), { ...options, wrt: ["m.o.weight", "x"] });
  expect(model.outputs).toEqual(["y", "grad.m.o.weight", "grad.x"]);
  const wrong = importModel(torchFile("own-block-grads"), { ...options, wrt: ["m.o.weigth"] });
  await expect(wrong).rejects.toThrow(DiagnosticError);
  await expect(wrong).rejects.toThrow(/no parameter or argument m\.o\.weigth[^]*did you mean m\.o\.weight\?/u);
});

it("without folding, no input has a value of its own", async () => {
  const values = async (fold: boolean): Promise<number> => {
    const { inputs } = await importModel(torchFile("llama"), { file: "llama.pt2", fold });
    return inputs.filter(({ names }) => names[0]?.startsWith("folded/")).length;
  };
  expect(await values(false)).toBe(0);
  expect(await values(true)).toBeGreaterThan(0);
});

it("a half of a model without outputs that depend on the inputs has no gradients", async () => {
  const model = await importModel(torchFile("own-block-grads"), { file: "block.pt2" });
  expect(halfOfModel(model, "forward", "all")).toBe(model);
});
