/**
 * The two plans of a block on fake GPUs, run by the Python package: what a rank saved in the forward pass goes to the
 * backward pass of the same rank, as its bytes are. The gradients are those that PyTorch computed.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compile } from "../../src/compile/compile.ts";
import type { ImportedModel } from "../../src/import/model.ts";
import { emptyTensor, type Tensor, tensorBytes } from "../../src/numerics/tensor/host-tensor.ts";
import { makePlan } from "../../src/plan/make-plan.ts";
import type { PlanTensor } from "../../src/plan/rank-document.ts";
import type { Plan } from "../../src/plan/read-plan.ts";
import { planShard, putPart } from "../../src/cli/plan/run-plan.ts";
import { at, invariant } from "../../src/support/invariant.ts";
import { emulationObstacle } from "../backends/cuda/emulate/compiler.ts";
import { buildFakes, type Fakes } from "../backends/cuda/fake/build-fakes.ts";
import { halvesOfBlock, parametersOfBlock } from "../import/torch-export/block-halves.ts";
import { expectRecorded, recorded } from "../import/torch-export/torch-files.ts";
import { read, target } from "../plan/plans.ts";
import { pythonRanks, writePlan } from "./python-ranks.ts";

const obstacle = process.platform === "linux" ? emulationObstacle() : "fake GPUs are shared objects for Linux";
if (obstacle !== null) console.log(`test/python/halves is skipped: ${obstacle}`);

const scratch = mkdtempSync(path.join(tmpdir(), "braid-tests-"));
let fakes: Fakes;
beforeAll(() => {
  if (obstacle === null) fakes = buildFakes(4);
}, 60_000);
afterAll(() => {
  rmSync(scratch, { recursive: true });
  if (obstacle === null) rmSync(fakes.folder, { recursive: true });
});

/** By rank and name: a rank's part of a tensor. */
type Parts = readonly Map<string, Uint8Array>[];

function boundOf({ ranks }: Plan, rank: number, role: PlanTensor["role"]): readonly PlanTensor[] {
  return at(ranks, rank).tensors.filter((tensor) => tensor.role === role);
}

async function planOf(model: ImportedModel, devices: number, folder: string): Promise<Plan> {
  const compilation = compile(model.fusion, { devices, on: "cuda", backend: "cuda" });
  const names = { inputs: model.inputs.map(({ names: [name = ""] }) => name), outputs: model.outputs };
  const options = { braid: "0.1.0", program: "0".repeat(16), options: {}, target, limits: new Map(), names };
  const { files } = makePlan(compilation, options);
  writePlan(folder, files);
  return read(files);
}

/** Takes parts by the names of the plan's inputs, and adds those of its outputs. */
async function run(folder: string, plan: Plan, parts: Parts): Promise<void> {
  const { inputs, outputs, world } = plan.document;
  parts.forEach((known, rank) => {
    const given = boundOf(plan, rank, "input").map(({ position, bytes }) => {
      const part = known.get(at(inputs, position).named ?? "");
      invariant(part?.length === bytes, "a part has the size that the plan wants", at(inputs, position));
      return part;
    });
    writeFileSync(path.join(folder, `in-${rank}`), Buffer.concat(given));
  });
  const ended = await pythonRanks(world, "run-plan.py", [folder, "2"], fakes.env);
  expect(ended.map(({ status, err }) => [status, err])).toEqual(ended.map(() => [0, ""]));
  parts.forEach((known, rank) => {
    const bytes = new Uint8Array(readFileSync(path.join(folder, `out-${rank}`)));
    let offset = 0;
    for (const tensor of boundOf(plan, rank, "output")) {
      known.set(at(outputs, tensor.position).named ?? "", bytes.slice(offset, offset + tensor.bytes));
      offset += tensor.bytes;
    }
  });
}

function wholeOf(plan: Plan, parts: Parts, name: string): Tensor {
  const position = plan.document.outputs.findIndex(({ named }) => named === name);
  const { dtype, shape } = at(plan.document.outputs, position);
  const whole = emptyTensor(dtype, shape);
  parts.forEach((known, rank) => {
    const tensor = boundOf(plan, rank, "output").find((each) => each.position === position);
    invariant(tensor !== undefined, "every rank has a part", name);
    putPart(tensor, shape, known.get(name) ?? new Uint8Array(), tensorBytes(whole));
  });
  return whole;
}

describe.skipIf(obstacle !== null)("both plans of a block on fake GPUs", () => {
  it.each([
    [2, "Replicate()", "minimal"],
    [2, "Shard(1)", "all"],
    [4, "Shard(1)", "minimal"],
    [4, "Replicate()", 20_000],
  ] as const)("%i ranks, rows %s, saving %s", async (devices, rows, save) => {
    const io = await recorded("own-block-grads");
    const halves = await halvesOfBlock(devices, rows, save);
    const values = new Map(io);
    for (const { names, value } of halves.forward.inputs) if (value !== null) values.set(at(names, 0), value);
    const parts = Array.from({ length: devices }, () => new Map<string, Uint8Array>());
    for (const half of ["forward", "backward"] as const) {
      const folder = path.join(scratch, `${devices}-${rows.slice(0, 5)}-${half}`);
      const plan = await planOf(halves[half], devices, folder);
      parts.forEach((known, rank) => {
        for (const tensor of boundOf(plan, rank, "input")) {
          const { named, shape } = at(plan.document.inputs, tensor.position);
          const whole = values.get(named ?? "");
          if (whole === undefined || known.has(named ?? "")) continue;
          known.set(named ?? "", planShard(tensor, shape, tensorBytes(whole)));
        }
      });
      await run(folder, plan, parts);
      const names = half === "forward" ? ["y"] : parametersOfBlock.map((name) => `grad.${name}`);
      for (const name of names) expectRecorded(name, wholeOf(plan, parts, name), io);
    }
  });
});
