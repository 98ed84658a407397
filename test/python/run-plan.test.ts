/**
 * The Python package runs plans as the CUDA back end does: on fake GPUs, it makes the same calls with the same arguments
 * in the same order, and the outputs have the same bytes.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fingerprint } from "../../src/cli/run/outputs.ts";
import type { compile } from "../../src/compile/compile.ts";
import { emptyTensor, tensorBytes } from "../../src/numerics/tensor/host-tensor.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import type { PlanFiles } from "../../src/plan/make-plan.ts";
import type { PlanTensor } from "../../src/plan/rank-document.ts";
import type { Plan } from "../../src/plan/read-plan.ts";
import { partOf, putPart } from "../../src/plan/shards.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { emulationObstacle } from "../backends/cuda/emulate/compiler.ts";
import { buildFakes, type Fakes } from "../backends/cuda/fake/build-fakes.ts";
import { attention, planOf, read, ring, total } from "../plan/plans.ts";
import { canonicalCalls, perRun } from "./driver-calls.ts";
import { ended, pythonRanks, writePlan } from "./python-ranks.ts";

const obstacle = process.platform === "linux" ? emulationObstacle() : "fake GPUs are shared objects for Linux";
if (obstacle !== null) console.log(`test/python/run-plan is skipped: ${obstacle}`);

const scratch = mkdtempSync(path.join(tmpdir(), "braid-tests-"));
let fakes: Fakes;
beforeAll(() => {
  if (obstacle === null) fakes = buildFakes(4);
}, 60_000);
afterAll(() => {
  rmSync(scratch, { recursive: true });
  if (obstacle === null) rmSync(fakes.folder, { recursive: true });
});

const runs = 4;
const seed = 7;

/** The rank's part of each tensor that a run takes or gives, in the order of the caller's addresses. */
function boundOf({ ranks }: Plan, rank: number, role: PlanTensor["role"]): readonly PlanTensor[] {
  return at(ranks, rank).tensors.filter((tensor) => tensor.role === role);
}

function write(folder: string, files: PlanFiles, plan: Plan): void {
  writePlan(folder, files);
  const inputs = randomInputs(plan.document.inputs, createRandom(seed), "uniform");
  for (let rank = 0; rank < plan.document.world; rank++) {
    const parts = boundOf(plan, rank, "input").map((tensor) => {
      const whole = at(inputs, tensor.position);
      return partOf(tensor, whole.shape, tensorBytes(whole));
    });
    writeFileSync(path.join(folder, `in-${rank}`), Buffer.concat(parts));
  }
}

/** Of the outputs that the ranks in Python have written. */
function fingerprintsIn(folder: string, plan: Plan): readonly string[] {
  const wholes = plan.document.outputs.map(({ dtype, shape }) => emptyTensor(dtype, shape));
  for (let rank = plan.document.world - 1; rank >= 0; rank--) {
    const bytes = new Uint8Array(readFileSync(path.join(folder, `out-${rank}`)));
    let offset = 0;
    for (const tensor of boundOf(plan, rank, "output")) {
      const whole = at(wholes, tensor.position);
      putPart(tensor, whole.shape, bytes.subarray(offset, offset + tensor.bytes), tensorBytes(whole));
      offset += tensor.bytes;
    }
  }
  return wholes.map(fingerprint);
}

const plans = {
  "a ring of copies, 2 ranks": () => ring(2),
  "a ring of copies, 4 ranks": () => ring(4),
  "sums by kernels that wait, uneven, 3 ranks": total,
  "attention by cuDNN": attention,
} satisfies Record<string, () => ReturnType<typeof compile>>;

describe.skipIf(obstacle !== null)("braid_torch on fake GPUs", () => {
  it.each(Object.entries(plans))("runs %s as the CUDA back end does", async (name, build) => {
    const files = planOf(build());
    const plan = await read(files);
    const folder = path.join(scratch, name.replaceAll(/\W+/g, "-"));
    write(folder, files, plan);
    const { world } = plan.document;
    const main = path.resolve(import.meta.dirname, "../../dist/cli/main.js");
    const args = ["--on", "cuda", "--repeat", String(runs), "--seed", String(seed), "--json"];
    const [own, python] = await Promise.all([
      ended([process.execPath, main, "run", folder, ...args], { ...fakes.env, FAKE_CUDA_CALLS: `${folder}/node-` }),
      pythonRanks(world, "run-plan.py", [folder, String(runs)], {
        ...fakes.env,
        FAKE_CUDA_CALLS: `${folder}/python-`,
      }),
    ]);
    expect([own.err, ...python.map(({ err }) => err)].join("")).toBe("");
    const { outputs } = JSON.parse(own.out) as { readonly outputs: readonly { readonly fingerprint: string }[] };
    expect(fingerprintsIn(folder, plan)).toEqual(outputs.map((output) => output.fingerprint));
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
  });
});
