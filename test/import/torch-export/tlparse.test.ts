/**
 * Graphs as tlparse writes them, of a transformer block with causal attention: the joint graph of AOTAutograd, and the
 * two that it is cut into.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { type ImportedModel, importModel, type ImportOptions, MultiDeviceExecutor, print } from "@braid-compiler/braid";
import { shapeOf } from "../../../src/ir/sizes.ts";
import type { Tensor } from "../../../src/numerics/tensor/host-tensor.ts";
import { evaluateFusion } from "../../../src/oracle/evaluate.ts";
import { randomInputs } from "../../../src/oracle/random-inputs.ts";
import { at } from "../../../src/support/invariant.ts";
import { createRandom } from "../../../src/support/random.ts";
import { requireEqual } from "../run-text.ts";

const folder = path.resolve(import.meta.dirname, "../torch/tlparse");
const textOf = (name: string): string => readFileSync(path.join(folder, name), "utf8");
const joint = textOf("aot_joint_graph_4.txt");

const read = (text: string, options: ImportOptions = {}): Promise<ImportedModel> =>
  importModel(text, { file: "graph.txt", ...options });

const namesOf = ({ inputs }: ImportedModel): readonly string[] => inputs.map(({ names }) => at(names, 0));

function valuesFor(model: ImportedModel): readonly Tensor[] {
  const { tensors, inputs } = model.fusion.data();
  const shapes = inputs.map((id) => ({ dtype: at(tensors, id).dtype, shape: shapeOf(at(tensors, id), new Map()) }));
  return randomInputs(shapes, createRandom(3), "uniform");
}

const evaluated = ({ fusion }: ImportedModel, inputs: readonly Tensor[]): readonly Tensor[] =>
  evaluateFusion(fusion.data(), inputs).outputs;

it("a joint graph gives the gradients that Braid derives of its forward part", async () => {
  const both = await read(joint);
  const given = valuesFor(both);
  const [forward = ""] = /^[^]*\n\s*add_1: .*\n/u.exec(joint) ?? [];
  const plain = `${forward.replace(/^\s*tangents_1: .*\n/mu, "")}        return (add_1,)\n`;
  const wrt = namesOf(both).slice(0, -1);
  const derived = await read(plain, { gradients: "tangents_1", wrt });
  expect(namesOf(derived)).toEqual(namesOf(both));
  expect(derived.outputs).toEqual(["y", ...wrt.map((name) => `grad.${name}`)]);
  requireEqual(evaluated(both, given), evaluated(derived, given));
});

it("the backward graph takes what the forward graph saves", async () => {
  const both = await read(joint);
  const [forward, backward] = await Promise.all(
    ["aot_forward_graph_5.txt", "aot_backward_graph_6.txt"].map((name) => read(textOf(name))),
  );
  const given = valuesFor(both);
  const outputs = evaluated(forward ?? both, given.slice(0, -1));
  const [, ...saved] = Array.from(
    textOf("aot_forward_graph_5.txt").matchAll(/^ {12}(\w+),/gmu),
    ([, name = ""]) => name,
  );
  const byName = new Map([
    ...saved.map((name, i) => [name, at(outputs, i + 1)] as const),
    ["tangents_1", at(given, given.length - 1)],
  ]);
  const passed = namesOf(backward ?? both).flatMap((name) => byName.get(name) ?? []);
  requireEqual([at(outputs, 0), ...evaluated(backward ?? both, passed)], evaluated(both, given));
});

it("runs in data parallel by a plan, which sums the gradients of weights", async () => {
  const sharded = ["Shard(0)"];
  const plan = { mesh: { dp: 2 }, inputs: { primals_1: sharded, tangents_1: sharded }, outputs: { out0: sharded } };
  const model = await read(joint, { plan: { text: JSON.stringify(plan), file: "plan.json" } });
  const given = valuesFor(model);
  const executor = await MultiDeviceExecutor.create(model.fusion, { devices: 2 });
  try {
    requireEqual(await executor.run(given), evaluated(await read(joint), given));
    const moved = Array.from(print(executor.hostProgram(0)).matchAll(/\(type=(\w+)/gu), ([, type]) => type);
    expect(moved).toEqual(Array.from({ length: 12 }, () => "Allreduce"));
  } finally {
    await executor.close();
  }
});
