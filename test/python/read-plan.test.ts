/** The Python package reads plans as src/plan does: the same contents, and the same refusals of broken ones. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { DiagnosticError } from "../../src/diagnostics/diagnostic.ts";
import type { PlanFiles } from "../../src/plan/make-plan.ts";
import { sha256 } from "../../src/plan/sha256.ts";
import { at } from "../../src/support/invariant.ts";
import { attention, breaks, changed, planOf, read, ring, total } from "../plan/plans.ts";

const scratch = mkdtempSync(path.join(tmpdir(), "braid-tests-"));
afterAll(() => rmSync(scratch, { recursive: true }));

const whole = { ring: planOf(ring(4)), total: planOf(total()), attention: planOf(attention()) };
const two = planOf(ring());
const flipped = new Map(two).set("rank-1.json", (two.get("rank-1.json") ?? "").replace("half", "hale"));
/** Plans with another number in a document of a rank: some are refused, by the form or by what numbers name. */
const mutants = fc.sample(
  fc.tuple(fc.constantFrom("rank-0.json", "rank-1.json"), fc.nat(), fc.constantFrom("0", "1", "3", "-1", "2.5", "1e6")),
  { numRuns: 80, seed: 20 },
);
const mutated = mutants.map(([file, pick, number]) => {
  const text = two.get(file) ?? "";
  const numbers = [...text.matchAll(/(?<=[:[,] ?)-?\d+(?=[,\]}\n])/g)];
  const { index, 0: found } = at(numbers, pick % numbers.length);
  const after = text.slice(0, index) + number + text.slice(index + found.length);
  return after === text ? two : changed(two, file, () => after);
});

const broken = [
  ["a flipped byte", flipped] as const,
  ...breaks.map(
    ([name, file, [before, after]]) => [name, changed(two, file, (t) => t.replace(before, after))] as const,
  ),
];

function inPython(): Record<string, { refused?: string[]; fix?: string }> {
  const all = [
    ...Object.entries(whole),
    ...broken.map(([, each], i) => [`${i}`, each] as const),
    ...mutated.map((each, i) => [`mutant ${i}`, each] as const),
  ];
  for (const [name, files] of all) write(path.join(scratch, name), files);
  const { status, stdout, stderr } = spawnSync(
    "python3",
    ["-B", path.join(import.meta.dirname, "read-plans.py"), scratch],
    {
      encoding: "utf8",
      timeout: 60_000,
    },
  );
  expect(stderr).toBe("");
  expect(status).toBe(0);
  return JSON.parse(stdout) as ReturnType<typeof inPython>;
}

function write(folder: string, files: PlanFiles): void {
  mkdirSync(path.join(folder, "kernels"), { recursive: true });
  for (const [file, text] of files) writeFileSync(path.join(folder, file), text);
}

async function inTypeScript(files: PlanFiles): Promise<string[]> {
  const error: unknown = await read(files).catch((reason: unknown) => reason);
  if (!(error instanceof DiagnosticError)) throw new Error("the plan is not refused");
  const { code, place, found, expected } = at(error.diagnostics, 0);
  return [code, place?.kind === "file" ? path.relative("plan", place.path) : "", found ?? "", expected ?? ""];
}

describe("braid_torch.read_plan", () => {
  const accounts = inPython();

  it.each(Object.entries(whole))("reads the plan of %s", async (name, files) => {
    const { hash, document, ranks } = await read(files);
    expect(accounts[name]).toEqual({
      hash,
      kernels: document.kernels.map(({ file }) => sha256(files.get(file) ?? "")),
      ranks: ranks.map(({ ops }) => ops.ops.map(({ kind }) => kind)),
    });
  });

  it.each(broken.map(([name, files], i) => [name, `${i}`, files] as const))(
    "refuses %s as TypeScript does",
    async (name, folder, files) => {
      const { refused = [], fix } = accounts[folder] ?? {};
      const expected = await inTypeScript(files);
      expect(fix).toContain("braid compile");
      // Parsers and schemas say in their own words what they found.
      const own = ["no JSON", "an unknown operation", "a negative offset"].includes(name);
      const compared = own ? 2 : 4;
      expect(refused).toHaveLength(4);
      expect(refused.slice(0, compared)).toEqual(expected.slice(0, compared));
    },
  );

  it("refuses those of 80 plans with another number that TypeScript refuses, in the same place", async () => {
    const verdicts = await Promise.all(
      mutated.map((files) =>
        read(files).then(
          () => null,
          () => inTypeScript(files),
        ),
      ),
    );
    expect(mutated.map((_files, i) => accounts[`mutant ${i}`]?.refused?.slice(0, 2) ?? null)).toEqual(
      verdicts.map((verdict) => verdict?.slice(0, 2) ?? null),
    );
    expect(verdicts.filter((verdict) => verdict === null).length).toBeGreaterThan(10);
    expect(verdicts.filter((verdict) => verdict !== null).length).toBeGreaterThan(10);
  });

  it("names the member of another form, and its value", () => {
    const said = (name: string): unknown => accounts[`${broken.findIndex(([each]) => each === name)}`]?.refused;
    expect(said("a negative offset")).toEqual([
      "plan-invalid",
      "rank-0.json",
      expect.stringMatching(/\.offset: -1$/),
      ">=0",
    ]);
    expect(said("an unknown operation")).toEqual([
      "plan-invalid",
      "rank-0.json",
      expect.stringMatching(/^ops\.\d+\.kind: "gemv"$/),
      expect.any(String),
    ]);
  });
});
