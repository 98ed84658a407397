/** Fake GPUs for the tests of a file. */
import { rmSync } from "node:fs";
import process from "node:process";
import { afterAll, beforeAll } from "vitest";
import { emulationObstacle } from "../emulate/compiler.ts";
import { buildFakes, type Fakes } from "./build-fakes.ts";

/** Why this machine has no fake GPUs, so that their tests are skipped; null if it has them. */
export const obstacle = process.platform === "linux" ? emulationObstacle() : "fake GPUs are shared objects for Linux";
if (obstacle !== null) console.log(`tests on fake GPUs are skipped: ${obstacle}`);

/** Built before the tests of the file that calls it, and removed after them. */
export function ownFakes(devices: number, env: Fakes["env"] = {}): () => Fakes {
  let fakes: Fakes;
  beforeAll(() => {
    if (obstacle !== null) return;
    const built = buildFakes(devices);
    fakes = { ...built, env: { ...built.env, ...env } };
  }, 60_000);
  afterAll(() => {
    if (obstacle === null) rmSync(fakes.folder, { recursive: true });
  });
  return () => fakes;
}
