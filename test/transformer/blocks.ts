/** The blocks of examples/transformer at any sizes, and inputs for them. */
import type { FusionData, Tensor } from "@braid-compiler/braid";
import { readFileSync } from "node:fs";
import path from "node:path";
import type { Parameters, ProgramFile } from "../../src/host/program-file.ts";
import { shapeOf } from "../../src/ir/sizes.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { examplesFolder } from "../support/example-program.ts";

/** The text of a block with `from`, which occurs once, replaced. */
export function editedBlock(name: string, from: string, to: string): string {
  const text = readFileSync(path.join(examplesFolder, "transformer", `${name}.ts`), "utf8");
  if (text.split(from).length !== 2) throw new Error(`${name} does not have ${from} once`);
  return text.replace(from, to);
}

/** Of `params`, those that the program has. */
export function blockData(program: ProgramFile, devices: number, params: Parameters): FusionData {
  const known = Object.entries(params).filter(([name]) => name in program.defaults);
  const built = program.build({ devices, params: Object.fromEntries(known) });
  if (!("data" in built)) throw new Error("not a Fusion");
  return built.data();
}

export function drawnInputs({ inputs, tensors }: FusionData): readonly Tensor[] {
  const shapes = inputs
    .map((id) => at(tensors, id))
    .map((each) => ({ dtype: each.dtype, shape: shapeOf(each, new Map()) }));
  return randomInputs(shapes, createRandom(1), "uniform");
}
