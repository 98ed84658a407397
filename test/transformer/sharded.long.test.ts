/**
 * The GPT and the Llama block give the same results on 1, 2, 4 and 8 devices, forward and backward, tensor parallel
 * with and without sequence parallelism. Floats differ by rounding alone. Masks, indices and random numbers have equal
 * bits: all tensors of integers and bools are outputs, too.
 */
import * as braid from "@braid-compiler/braid";
import { Fusion, type FusionData, MultiDeviceExecutor, type Tensor } from "@braid-compiler/braid";
import { expect, it } from "vitest";
import { loadProgram } from "../../src/cli/program/load-program.ts";
import { checkOutputs } from "../../src/cli/run/outputs.ts";
import { placedData } from "../../src/compile/lower.ts";
import { shardsOf } from "../../src/ir/shards.ts";
import { type DType, dtypes } from "../../src/numerics/dtype.ts";
import { at } from "../../src/support/invariant.ts";
import { cpuBackends } from "../support/cpu-backends.ts";
import { combinations } from "../support/split-cases.ts";
import { blockData, drawnInputs, editedBlock } from "./blocks.ts";
import { ownFolder } from "../cli/own-folder.ts";

const folder = ownFolder();

/** Dropout in attention makes the causal mask and the random numbers ops of the program. */
const blocks = {
  llama: ["llama-block", '{ causal: "topLeft" }'],
  gpt: ["gpt-block", '{ causal: "topLeft" }'],
  "gpt, dropout in attention": ["gpt-block", '{ causal: "topLeft", dropout: { p: 0.2, seed } }'],
} as const;

interface Case {
  readonly block: keyof typeof blocks;
  readonly SP: 0 | 1;
  readonly devices: number;
}

const sizes = { S: 2, B: 2, L: 8, H: 32, HEADS: 8, GROUPS: 4, FFN: 16, DROPOUT: 0.2 };

async function build({ block, SP, devices }: Case): Promise<FusionData> {
  const [name, options] = blocks[block];
  const text = editedBlock(name, '{ causal: "topLeft" }', options);
  const { program } = await loadProgram(folder.write(`${name}-${options.length}.ts`, text), {
    "@braid-compiler/braid": braid,
  });
  const data = blockData(program, devices, { ...sizes, SP });
  const made = data.ops.flatMap(({ output }) => (isFloat(at(data.tensors, output)) ? [] : [output]));
  return { ...data, outputs: [...data.outputs, ...made] };
}

function isFloat({ dtype }: { readonly dtype: DType }): boolean {
  return dtypes[dtype].family === "float";
}

/** The outputs, which are the oracle's. */
async function results(data: FusionData, devices: number): Promise<readonly Tensor[]> {
  const fusion = new Fusion(data);
  const inputs = drawnInputs(data);
  const executor = await MultiDeviceExecutor.create(fusion, { devices, on: at(cpuBackends, 0) });
  try {
    const outputs = await executor.run(inputs);
    const copies = outputs.map((tensor) => [{ tensor, ranks: [0] }]);
    const checks = checkOutputs(placedData(fusion, {}), inputs, new Map(), copies, "braid");
    expect(checks.filter(({ failure }) => failure !== null)).toEqual([]);
    return outputs;
  } finally {
    await executor.close();
  }
}

/** The norm of the difference, relative to that of `b`. */
function distance(a: Tensor, b: Tensor): number {
  let [difference, size] = [0, 0];
  b.data.forEach((element: number | bigint, i: number) => {
    difference += (Number(a.data[i]) - Number(element)) ** 2;
    size += Number(element) ** 2;
  });
  return Math.sqrt(difference / size);
}

const cases = combinations<Case>({
  block: ["llama", "gpt", "gpt, dropout in attention"],
  SP: [1, 0],
  devices: [2, 4, 8],
});

it.each(cases)("$block, SP=$SP, on $devices devices", async (each) => {
  const own = await build(each);
  const whole = await results(await build({ ...each, devices: 1 }), 1);
  const sharded = await results(own, each.devices);
  expect(sharded.filter((tensor) => !isFloat(tensor))).toEqual(whole.filter((tensor) => !isFloat(tensor)));
  whole.forEach((tensor, i) => {
    const result = at(sharded, i);
    expect(result.shape).toEqual(tensor.shape);
    if (isFloat(tensor)) expect(distance(result, tensor)).toBeLessThan(2e-6);
  });
  // Devices have shares of the masks, not copies, where something cuts them: heads or tokens.
  const { tensors } = placedData({ data: () => own }, {});
  const masks = own.outputs.map((id) => at(tensors, id)).filter(({ dtype }) => dtype === "bool");
  const cut = masks.some((mask) => shardsOf(mask).length > 0);
  expect(cut).toBe(each.block === "gpt, dropout in attention" || (each.block === "gpt" && each.SP === 1));
});
