/**
 * Plans of random programs: both readers take them, nothing of the device operations is lost, and on fake GPUs the CUDA
 * back end and the Python package compute the oracle's results.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { deviceOps } from "../../src/backends/cuda/ops/device-ops.ts";
import type { Tensor } from "../../src/numerics/tensor/host-tensor.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { compare } from "../../src/oracle/value.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { emulationObstacle } from "../backends/cuda/emulate/compiler.ts";
import { buildFakes, type Fakes } from "../backends/cuda/fake/build-fakes.ts";
import { planOf, read, target } from "../plan/plans.ts";
import { runs } from "../support/suite.ts";
import { expectEqualRuns } from "./both-runs.ts";
import { type DrawnPlan, drawnPlans } from "./drawn-plans.ts";
import { writePlan } from "./python-ranks.ts";
import { readInPython } from "./read-in-python.ts";

const obstacle = process.platform === "linux" ? emulationObstacle() : "fake GPUs are shared objects for Linux";
if (obstacle !== null) console.log(`test/python/drawn-plans runs none: ${obstacle}`);

const scratch = mkdtempSync(path.join(tmpdir(), "braid-tests-"));
afterAll(() => rmSync(scratch, { recursive: true }));

const seed = inject("suite") === "quick" ? 1 : 2;
const plans = drawnPlans(runs({ quick: 12, long: 300 }), seed);

describe("plans of random programs", () => {
  const written = plans.map(({ compilation }) => planOf(compilation));
  const accounts = readInPython(path.join(scratch, "read"), new Map(written.map((files, i) => [`${i}`, files])));

  it("are read back by both readers, as they were made", async () => {
    for (const [i, { compilation }] of plans.entries()) {
      const files = at(written, i);
      const { ranks, hash } = await read(files);
      expect(accounts[`${i}`]).toMatchObject({ hash, ranks: ranks.map(({ ops }) => ops.ops.map(({ kind }) => kind)) });
      for (const { rank } of compilation.program.ranks) {
        const { memory, ...planned } = deviceOps(compilation.program, rank, target);
        const { ops } = at(ranks, rank);
        expect(ops).toMatchObject(planned);
        expect(ops.memory).toMatchObject(memory);
      }
    }
  });
});

describe.skipIf(obstacle !== null || inject("suite") === "quick")("plans of random programs, run by both", () => {
  let fakes: Fakes;
  beforeAll(() => {
    fakes = buildFakes(4);
  }, 60_000);
  afterAll(() => {
    rmSync(fakes.folder, { recursive: true });
  });

  it.each(plans.slice(0, runs({ quick: 0, long: 16 })).map((plan, i) => [i, plan] as const))(
    "program %i",
    async (i, drawn) => {
      const files = planOf(drawn.compilation);
      const folder = path.join(scratch, `run-${i}`);
      writePlan(folder, files);
      const plan = await read(files);
      const found = await expectEqualRuns(folder, plan, fakes);
      expectOracle(drawn, found, randomInputs(plan.document.inputs, createRandom(found.seed), "uniform"));
    },
  );
});

/** State is the oracle's after as many runs. */
function expectOracle(
  { placed, sizes }: DrawnPlan,
  { runs: count, outputs }: Awaited<ReturnType<typeof expectEqualRuns>>,
  given: readonly Tensor[],
): void {
  let inputs = given;
  let expected = evaluateFusion(placed, inputs, sizes);
  for (let run = 1; run < count; run++) {
    const state = new Map(placed.aliases?.map(({ input, output }) => [input, at(expected.outputs, output)]));
    inputs = inputs.map((value, i) => state.get(at(placed.inputs, i)) ?? value);
    expected = evaluateFusion(placed, inputs, sizes);
  }
  for (const [i, wanted] of expected.outputs.entries()) {
    const { firstBad } = compare(at(outputs, i), wanted, at(expected.bounds, i));
    expect(firstBad, `output ${i}`).toBeNull();
  }
}
