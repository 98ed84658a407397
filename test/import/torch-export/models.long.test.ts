/** Models of the transformers library on 1, 2 and 4 devices, with the plans of their families. */
import { describe, expect, it } from "vitest";
import { MultiDeviceExecutor } from "../../../src/executor/multi-device-executor.ts";
import { shardedModel } from "../../../src/import/plan/apply-plan.ts";
import { autoPlan } from "../../../src/import/plan/auto-plan.ts";
import { parsePlan } from "../../../src/import/plan/parse-plan.ts";
import type { ExportedModel } from "../../../src/import/torch-export/model.ts";
import { expectRecorded, inputsOf, recorded, torchProgram, withGradients } from "./torch-files.ts";

const block = { q: "colwise", k: "colwise", v: "colwise", o: "rowwise", w1: "colwise", w3: "colwise", w2: "rowwise" };

/** Runs the model, and compares the outputs of these names with the recorded ones of the file. */
async function expectOutputs(
  model: ExportedModel,
  devices: number,
  file: string,
  names: readonly string[],
): Promise<void> {
  const io = await recorded(file);
  const executor = await MultiDeviceExecutor.create(model.fusion, { devices });
  try {
    const outputs = await executor.run([...inputsOf(model, io)]);
    for (const name of names) {
      const found = outputs[model.outputs.findIndex((each) => each.name === name)];
      expectRecorded(name, found ?? undefined, io);
    }
  } finally {
    await executor.close();
  }
}

describe.each([1, 2, 4])("on %i devices", (devices) => {
  it.each(["llama", "gpt2", "bert", "mixtral"])("%s computes what PyTorch computed", async (name) => {
    const program = torchProgram(name);
    await expectOutputs(shardedModel(program, autoPlan(program, devices)), devices, name, ["y"]);
  });

  it.each(["llama", "gpt2", "bert"])("%s does so with its tokens cut", async (name) => {
    const program = torchProgram(name);
    const plan = autoPlan(program, devices, 0);
    expect(plan.modules.some(({ style }) => style === "sequence_parallel")).toBe(true);
    await expectOutputs(shardedModel(program, plan), devices, name, ["y"]);
  });

  it.each([
    ["whole", undefined],
    ["cut", 0],
  ])("phi3 and its gradients compute what PyTorch computed, its tokens %s", async (_, fewest) => {
    const program = torchProgram("phi3");
    const model = withGradients(shardedModel(program, autoPlan(program, devices, fewest)), "dy");
    const of = (module: string): string => `grad.m.model.${module}.weight`;
    const ofLayer = (layer: number): readonly string[] =>
      ["input_layernorm", "post_attention_layernorm", "self_attn.o_proj"].map((each) => of(`layers.${layer}.${each}`));
    await expectOutputs(model, devices, "phi3", ["y", ...ofLayer(0), ...ofLayer(1), of("norm")]);
  });

  it.each([
    ["tensor parallel", {}],
    ["sequence parallel", { n1: "sequence_parallel", n2: "sequence_parallel", inputs: { x: ["Shard(1)"] } }],
  ])("a block and its gradients, %s", async (_, more) => {
    const plan = { mesh: { tp: devices }, ...block, ...more };
    const sharded = shardedModel(torchProgram("own-block-grads"), parsePlan(JSON.stringify(plan), "plan.json"));
    const model = withGradients(sharded, "dy");
    const names = model.outputs.map(({ name }) => name);
    expect(names.length).toBe(10);
    await expectOutputs(model, devices, "own-block-grads", names);
  });
});
