/**
 * The Python package runs plans as the CUDA back end does: on fake GPUs, it makes the same calls with the same arguments
 * in the same order, and the outputs have the same bytes.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";
import { afterAll, beforeAll, describe, it } from "vitest";
import type { compile } from "../../src/compile/compile.ts";
import { emulationObstacle } from "../backends/cuda/emulate/compiler.ts";
import { buildFakes, type Fakes } from "../backends/cuda/fake/build-fakes.ts";
import { attention, empty, planOf, read, ring, total } from "../plan/plans.ts";
import { expectEqualRuns } from "./both-runs.ts";
import { writePlan } from "./python-ranks.ts";

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

const plans = {
  "a ring of copies, 2 ranks": () => ring(2),
  "a ring of copies, 4 ranks": () => ring(4),
  "sums by kernels that wait, uneven, 3 ranks": total,
  "a kernel that reads an empty tensor": empty,
  "attention by cuDNN": attention,
} satisfies Record<string, () => ReturnType<typeof compile>>;

describe.skipIf(obstacle !== null)("braid_torch on fake GPUs", () => {
  it.each(Object.entries(plans))("runs %s as the CUDA back end does", async (name, build) => {
    const files = planOf(build());
    const folder = path.join(scratch, name.replaceAll(/\W+/g, "-"));
    writePlan(folder, files);
    await expectEqualRuns(folder, await read(files), fakes);
  });
});
