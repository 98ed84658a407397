/** Plans of examples: Python and the CUDA back end give the same bytes by the same calls. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readPlan } from "../../src/plan/read-plan.ts";
import { emulationObstacle } from "../backends/cuda/emulate/compiler.ts";
import { buildFakes, type Fakes } from "../backends/cuda/fake/build-fakes.ts";
import { cli } from "../cli/captured-cli.ts";
import { expectEqualRuns } from "./both-runs.ts";

const obstacle = process.platform === "linux" ? emulationObstacle() : "fake GPUs are shared objects for Linux";
if (obstacle !== null) console.log(`test/python/examples is skipped: ${obstacle}`);

const scratch = mkdtempSync(path.join(tmpdir(), "braid-tests-"));
let fakes: Fakes;
beforeAll(() => {
  if (obstacle === null) fakes = buildFakes(4);
}, 60_000);
afterAll(() => {
  rmSync(scratch, { recursive: true });
  if (obstacle === null) rmSync(fakes.folder, { recursive: true });
});

/** A sample. EXAMPLES=all runs every example that has a plan, for minutes. */
const sample = [
  ["pipeline", 4],
  ["transformer/mlp", 2],
  ["transformer/weight-prefetch", 4],
] as const;
// oxlint-disable-next-line node/no-process-env
const cases = process.env["EXAMPLES"] === "all" ? everyExample() : sample;

function everyExample(): readonly (readonly [string, number])[] {
  const root = path.resolve(import.meta.dirname, "../../examples");
  // Those with transfers of NCCL have no plan; nvfuser's are dumps.
  const without = /^(nvfuser.*|hand-built|transformer.(fsdp|pipeline|ring-attention))$/;
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  const names = files.map((name) => name.slice(0, -".ts".length)).filter((name) => !without.test(name));
  return names.flatMap((name) => [2, 4].map((devices) => [name, devices] as const));
}

describe.skipIf(obstacle !== null)("braid_torch on fake GPUs", () => {
  it.each(cases)("runs examples/%s.ts on %d ranks as the CUDA back end does", async (example, devices) => {
    const file = path.resolve(import.meta.dirname, `../../examples/${example}.ts`);
    const folder = path.join(scratch, `${example.replace("/", "-")}-${devices}`);
    const { status, err } = await cli("compile", file, "--devices", String(devices), "-o", folder);
    expect(err).not.toContain("error");
    expect(status).toBe(0);
    const plan = await readPlan(folder, (name) => Promise.resolve(readFileSync(path.join(folder, name))));
    await expectEqualRuns(folder, plan, fakes);
  });
});
