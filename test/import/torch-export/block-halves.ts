/** The recorded block with its gradients, as two programs. */
import { halfOfModel } from "../../../src/cli/program/program-of-model.ts";
import { importModel } from "../../../src/import/import-model.ts";
import type { ImportedModel } from "../../../src/import/model.ts";
import { torchFile } from "./torch-files.ts";

const cuts = { q: 0, k: 0, v: 0, o: 1, w1: 0, w3: 0, w2: 1 };

export const parametersOfBlock = ["n1", "q", "k", "v", "o", "n2", "w1", "w3", "w2"].map((name) => `m.${name}.weight`);

/** `overDevices`: devices share the rows between the linear maps, whatever the caller has. */
export function blockPlan(
  devices: number,
  rows: string,
  overDevices = false,
): { readonly text: string; readonly file: string } {
  const lines = Object.entries(cuts).map(([name, axis]) => [`m.${name}.weight`, [`Shard(${axis})`]] as const);
  const document = {
    mesh: { tp: devices },
    ...Object.fromEntries(lines),
    inputs: { x: [rows] },
    ...(overDevices
      ? { activations: { "m.o": ["Shard(1)"], "m.w2": ["Shard(1)"] }, m: "all_reduce" }
      : { outputs: { y: [rows] } }),
  };
  return { text: JSON.stringify(document), file: "plan.json" };
}

export async function halvesOfBlock(
  devices: number,
  rows: string,
  save: "all" | "minimal" | number,
): Promise<{ readonly forward: ImportedModel; readonly backward: ImportedModel }> {
  const model = await importModel(torchFile("own-block-grads"), {
    file: "block.pt2",
    plan: blockPlan(devices, rows),
    gradients: "dy",
    wrt: ["x", ...parametersOfBlock],
    apart: true,
    fold: false,
  });
  return { forward: halfOfModel(model, "forward", save), backward: halfOfModel(model, "backward", save) };
}
