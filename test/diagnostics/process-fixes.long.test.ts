/** Fixes about machines, typed in processes: what they say is done, and the diagnostic is gone. */
import { rmSync } from "node:fs";
import process from "node:process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { emulationObstacle } from "../backends/cuda/emulate/compiler.ts";
import { buildFakes, type Fakes } from "../backends/cuda/fake/build-fakes.ts";
import { processRows } from "./process-rows.ts";

const obstacle = process.platform === "linux" ? emulationObstacle() : "fake GPUs are shared objects for Linux";
if (obstacle !== null) console.log(`test/diagnostics/process-fixes is skipped: ${obstacle}`);

let fakes: Fakes;
beforeAll(() => {
  if (obstacle === null) fakes = buildFakes(2);
}, 60_000);
afterAll(() => {
  if (obstacle === null) rmSync(fakes.folder, { recursive: true });
});

const possible = processRows.filter((row) => (row.obstacle ?? "") === "");

describe.skipIf(obstacle !== null)("fixes about machines", () => {
  it.each(possible)(
    "$help of $code, done, mends it",
    async ({ code, help, err }) => {
      const said = await err(null, fakes);
      const [, fix = ""] = new RegExp(`error\\[${code}\\][^]*?\\n *fix: (.*)`, "u").exec(said) ?? [];
      expect(fix, said).toMatch(help);
      expect(await err(fix, fakes)).toBe("");
    },
    60_000,
  );
});
