/** A pipeline whose sender copies: the rank that ends last, which receives, moves nothing itself. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { explain } from "../../src/explain/explain.ts";
import { parseProfile } from "../../src/simulate/parse-profile.ts";
import { exampleFusion } from "../support/example-program.ts";

const file = "profiles/2xH100.json";
const profile = parseProfile(readFileSync(file, "utf8"), file);

it("moves data, and takes no less than its floor", async () => {
  const fusion = await exampleFusion("pipeline.ts", 2, { M: 8192, K: 8192 });
  const options = { devices: 2, on: "cuda", backend: "cuda", protocol: "put" } as const;
  const { run } = explain(fusion, options, profile);
  expect(run.rank).toBe(1);
  expect(run.overlap.rank).toBe(0);
  expect(run.overlap.overlap).toBeGreaterThan(0.5);
  expect(run.floor.milliseconds).toBeLessThanOrEqual(run.milliseconds);
});
