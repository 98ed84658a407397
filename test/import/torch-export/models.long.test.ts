/** Models of the transformers library on 1, 2 and 4 devices, with the plans of their families. */
import { describe, expect, it } from "vitest";
import { MultiDeviceExecutor } from "../../../src/executor/multi-device-executor.ts";
import { withGradients } from "../../../src/import/torch-export/import-torch-export.ts";
import { autoPlan, shardedModel } from "../../../src/import/plan/apply-plan.ts";
import { parsePlan } from "../../../src/import/plan/parse-plan.ts";
import { expectRecorded, inputsOf, recorded, torchProgram } from "./torch-files.ts";

const block = { q: "colwise", k: "colwise", v: "colwise", o: "rowwise", w1: "colwise", w3: "colwise", w2: "rowwise" };

describe.each([1, 2, 4])("on %i devices", (devices) => {
  it.each(["llama", "gpt2", "bert"])("%s computes what PyTorch computed", async (name) => {
    const [program, io] = [torchProgram(name), await recorded(name)];
    const model = shardedModel(program, autoPlan(program, devices));
    const executor = await MultiDeviceExecutor.create(model.fusion, { devices });
    try {
      expectRecorded("y", (await executor.run([...inputsOf(model, io)]))[0], io);
    } finally {
      await executor.close();
    }
  });

  it.each([
    ["tensor parallel", {}],
    ["sequence parallel", { n1: "sequence_parallel", n2: "sequence_parallel", inputs: { x: ["Shard(1)"] } }],
  ])("a block and its gradients, %s", async (_, more) => {
    const plan = {
      mesh: { tp: devices },
      ...block,
      ...more,
    };
    const io = await recorded("own-block-grads");
    const sharded = shardedModel(torchProgram("own-block-grads"), parsePlan(JSON.stringify(plan), "plan.json"));
    const model = withGradients(sharded, "dy");
    const executor = await MultiDeviceExecutor.create(model.fusion, { devices });
    try {
      const outputs = await executor.run([...inputsOf(model, io)]);
      expect(model.outputs.length).toBe(10);
      model.outputs.forEach(({ name }, i) => {
        expectRecorded(name, outputs[i], io);
      });
    } finally {
      await executor.close();
    }
  });
});
