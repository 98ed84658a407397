/** The Python package and TypeScript refuse the same plans, each by one clear message. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, it } from "vitest";
import { DiagnosticError } from "../../src/diagnostics/diagnostic.ts";
import type { PlanFiles } from "../../src/plan/make-plan.ts";
import { mutatedPlan } from "../plan/mutate-plan.ts";
import { adding, attention, layers, planOf, read, ring, total } from "../plan/plans.ts";
import { runs } from "../support/suite.ts";
import { readInPython } from "./read-in-python.ts";

const scratch = mkdtempSync(path.join(tmpdir(), "braid-tests-"));
afterAll(() => rmSync(scratch, { recursive: true }));

async function verdictOf(files: PlanFiles): Promise<readonly string[] | null> {
  const error: unknown = await read(files).then(
    () => null,
    (reason: unknown) => reason,
  );
  if (error === null) return null;
  if (!(error instanceof DiagnosticError)) throw new Error("no diagnostic", { cause: error });
  expect(error.diagnostics).toHaveLength(1);
  const [{ code, place, found, expected, help } = { code: "" }] = error.diagnostics;
  for (const text of [found, expected, help]) expect(text).toMatch(/\S/u);
  return [code, place?.kind === "file" ? path.relative("plan", place.path) : ""];
}

it("of plans with one document changed", async () => {
  const plans = [ring(), total(), attention(), adding(), layers()].map(planOf);
  const count = runs({ quick: 60, long: 3000 });
  const first = count === 60 ? 0 : 1000;
  const mutated = Array.from({ length: count }, (_, i) => mutatedPlan(plans, first + i));
  const accounts = readInPython(scratch, new Map(mutated.map((files, i) => [`${i}`, files])));
  let accepted = 0;
  for (const [i, files] of mutated.entries()) {
    const verdict = await verdictOf(files);
    const { refused = null, fix } = accounts[`${i}`] ?? {};
    expect([first + i, refused?.slice(0, 2) ?? null]).toEqual([first + i, verdict]);
    if (verdict === null) accepted++;
    else for (const text of [refused?.[2], refused?.[3], fix]) expect(text).toMatch(/\S/u);
  }
  expect(accepted).toBeGreaterThan(count / 20);
  expect(count - accepted).toBeGreaterThan(count / 4);
}, 300_000);
