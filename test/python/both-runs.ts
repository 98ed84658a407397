/** Runs a plan by the CUDA back end and by the Python package, on fake GPUs, and compares outputs and driver calls. */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import { expect } from "vitest";
import { positionIn } from "../../src/commands/buffer.ts";
import { fingerprint } from "../../src/cli/run/outputs.ts";
import { emptyTensor, type Tensor, tensorBytes } from "../../src/numerics/tensor/host-tensor.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import type { PlanTensor } from "../../src/plan/rank-document.ts";
import type { Plan } from "../../src/plan/read-plan.ts";
import { planShard, putPart } from "../../src/cli/plan/run-plan.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import type { Fakes } from "../backends/cuda/fake/build-fakes.ts";
import { canonicalCalls, perRun } from "./driver-calls.ts";
import { ended, pythonRanks } from "./python-ranks.ts";

const runs = 4;
const seed = 7;

/** The rank's part of each tensor that a run takes or gives, in the order of the caller's addresses. */
function boundOf({ ranks }: Plan, rank: number, side: PlanTensor["role"]): readonly PlanTensor[] {
  return at(ranks, rank).tensors.filter((tensor) => positionIn(tensor, side) !== null);
}

function writeInputs(folder: string, plan: Plan): void {
  const inputs = randomInputs(plan.document.inputs, createRandom(seed), "uniform");
  for (let rank = 0; rank < plan.document.world; rank++) {
    const parts = boundOf(plan, rank, "input").map((tensor) => {
      const whole = at(inputs, tensor.position);
      return planShard(tensor, whole.shape, tensorBytes(whole));
    });
    writeFileSync(path.join(folder, `in-${rank}`), Buffer.concat(parts));
  }
}

/** Of the outputs that the ranks in Python have written. */
function outputsIn(folder: string, plan: Plan): readonly Tensor[] {
  const wholes = plan.document.outputs.map(({ dtype, shape }) => emptyTensor(dtype, shape));
  for (let rank = plan.document.world - 1; rank >= 0; rank--) {
    const bytes = new Uint8Array(readFileSync(path.join(folder, `out-${rank}`)));
    let offset = 0;
    for (const tensor of boundOf(plan, rank, "output")) {
      const whole = at(wholes, positionIn(tensor, "output") ?? -1);
      putPart(tensor, whole.shape, bytes.subarray(offset, offset + tensor.bytes), tensorBytes(whole));
      offset += tensor.bytes;
    }
  }
  return wholes;
}

/** What both gave, for inputs of `seed`. */
export interface EqualRuns {
  readonly seed: number;
  readonly runs: number;
  readonly outputs: readonly Tensor[];
}

/** `folder` holds the plan. */
export async function expectEqualRuns(folder: string, plan: Plan, fakes: Fakes): Promise<EqualRuns> {
  writeInputs(folder, plan);
  const main = path.resolve(import.meta.dirname, "../../dist/cli/main.js");
  const args = ["--on", "cuda", "--repeat", String(runs), "--seed", String(seed), "--json"];
  const [own, python] = await Promise.all([
    ended([process.execPath, main, "run", folder, ...args], { ...fakes.env, FAKE_CUDA_CALLS: `${folder}/node-` }),
    pythonRanks(plan.document.world, "run-plan.py", [folder, String(runs)], {
      ...fakes.env,
      FAKE_CUDA_CALLS: `${folder}/python-`,
    }),
  ]);
  expect([own.err, ...python.map(({ err }) => err)].join("")).toBe("");
  const { outputs } = JSON.parse(own.out) as { readonly outputs: readonly { readonly fingerprint: string }[] };
  const found = outputsIn(folder, plan);
  expect(found.map(fingerprint)).toEqual(outputs.map((output) => output.fingerprint));
  for (const [rank, { out }] of python.entries()) {
    const { before, after, ...counts } = JSON.parse(out) as Record<string, number>;
    expect(counts).toEqual({ runs, graphs: runs - 1, one_by_one: 1, captured: 0, refused: 0 });
    const calls = (of: string): readonly string[] =>
      readFileSync(path.join(folder, `${of}-${rank}`), "utf8")
        .trim()
        .split("\n");
    const expected = canonicalCalls(perRun(calls("node"), 0, 0));
    expect(expected.length).toBeGreaterThan(2);
    expect(canonicalCalls(perRun(calls("python"), before ?? 0, after ?? 0))).toEqual(expected);
  }
  return { seed, runs, outputs: found };
}
