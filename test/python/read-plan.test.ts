/** The Python package reads plans as src/plan does: the same contents, and the same refusals of broken ones. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { DiagnosticError } from "../../src/diagnostics/diagnostic.ts";
import { unfoldLists } from "../../src/plan/blocks.ts";
import type { PlanFiles } from "../../src/plan/make-plan.ts";
import { sha256 } from "../../src/plan/plan-document.ts";
import { at } from "../../src/support/invariant.ts";
import { readInPython } from "./read-in-python.ts";
import { attention, breaks, brokenBlocks, changed, empty, layers, planOf, read, ring, total } from "../plan/plans.ts";

const scratch = mkdtempSync(path.join(tmpdir(), "braid-tests-"));
afterAll(() => rmSync(scratch, { recursive: true }));

const whole = {
  ring: planOf(ring(4)),
  total: planOf(total()),
  empty: planOf(empty()),
  attention: planOf(attention()),
  layers: planOf(layers()),
};
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

/** Forms that JSON has and schemas are lax about: what is changed, in which file, and how. */
const forms: readonly (readonly [string, string, (text: string) => string])[] = [
  [
    "a run of three numbers",
    "rank-0.json",
    (text) => text.replace(/"held":\[\[\[(\d+),(\d+)\]/u, '"held":[[[$1,$2,0]'),
  ],
  [
    "a grid of four numbers",
    "rank-0.json",
    (text) => text.replace(/"grid":\[(\d+),(\d+),(\d+)\]/u, '"grid":[$1,$2,$3,1]'),
  ],
  ["options that are a list", "plan.json", (text) => text.replace(/"options": \{.*\}/u, '"options": []')],
  ["files that are a list", "plan.json", (text) => text.replace(/"files": \{.*\}/u, '"files": []')],
  ["an option constructor", "plan.json", (text) => text.replace('"options": {', '"options": {"constructor":"x",')],
  ["an option __proto__", "plan.json", (text) => text.replace('"options": {', '"options": {"__proto__":"x",')],
  ["an option that is no flag", "plan.json", (text) => text.replace('"options": {', '"options": {"streams":"2",')],
  ["a file __proto__", "plan.json", (text) => text.replace('"files": {', `"files": {"__proto__":"${"0".repeat(64)}",`)],
  ["a hash with a line end", "plan.json", (text) => text.replace(/"([0-9a-f]{64})"/u, '"$1\\n"')],
  ["a member twice", "rank-1.json", (text) => text.replace("{", '{"rank":1,')],
  ["a mark of the byte order", "rank-1.json", (text) => `\u{feff}${text}`],
  [
    "an unknown member that is deep",
    "rank-1.json",
    (text) => text.replace("{", `{"x":${"[".repeat(100)}${"]".repeat(100)},`),
  ],
];

const broken = [
  ["a flipped byte", flipped] as const,
  ...breaks.map(
    ([name, file, [before, after]]) => [name, changed(two, file, (t) => t.replace(before, after))] as const,
  ),
];

/** With the members of objects in alphabetical order, as Python prints it for `read-plans.py`. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, member]) => [name, sorted(member)]),
  );
}

async function inTypeScript(files: PlanFiles): Promise<string[]> {
  const error: unknown = await read(files).catch((reason: unknown) => reason);
  if (!(error instanceof DiagnosticError)) throw new Error("the plan is not refused");
  const { code, place, found, expected } = at(error.diagnostics, 0);
  return [code, place?.kind === "file" ? path.relative("plan", place.path) : "", found ?? "", expected ?? ""];
}

const laxed = [
  ...forms.map(([name, file, change]) => [name, changed(two, file, change)] as const),
  ...brokenBlocks.map(
    ([name, [before, after]]) =>
      [name, changed(whole.layers, "rank-0.json", (text) => text.replace(before, after))] as const,
  ),
];

describe("braid_torch.read_plan", () => {
  const accounts = readInPython(
    scratch,
    new Map([
      ...Object.entries(whole),
      ...broken.map(([, each], i) => [`${i}`, each] as const),
      ...laxed,
      ...mutated.map((each, i) => [`mutant ${i}`, each] as const),
    ]),
  );

  it.each(Object.entries(whole))("reads the plan of %s", async (name, files) => {
    const { hash, document, ranks } = await read(files);
    expect(accounts[name]).toEqual({
      hash,
      kernels: document.kernels.map(({ file }) => sha256(files.get(file) ?? "")),
      ranks: ranks.map(({ ops }) => ops.ops.map(({ kind }) => kind)),
      documents: ranks.map((_rank, rank) => {
        const written: unknown = JSON.parse(files.get(`rank-${rank}.json`) ?? "");
        return sha256(JSON.stringify(sorted(unfoldLists(written))));
      }),
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

  it.each(laxed)("refuses %s as TypeScript does", async (name, files) => {
    expect(accounts[name]?.refused?.slice(0, 2)).toEqual((await inTypeScript(files)).slice(0, 2));
  });

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
