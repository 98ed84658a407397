/** The generated parts of docs/ are up to date; `npm run docs` regenerates them. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { generatedDocs } from "../../scripts/generated-docs.ts";
import { withOptionTables } from "../../scripts/option-tables.ts";
import { compileRows } from "../../src/cli/compile/compile-options.ts";
import { benchRows } from "../../bench/compare/bench-options.ts";
import { flagOf, flagOfRow, namesOf } from "../../src/compile/options.ts";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");

it.each([...generatedDocs(root)])("%s", (path, text) => {
  expect(readFileSync(join(root, path), "utf8")).toBe(text);
});

/** The flags in the first column of tables. */
function flagsIn(page: string): ReadonlySet<string> {
  const text = readFileSync(join(root, page), "utf8");
  return new Set([...text.matchAll(/^\| `(--?[a-z0-9-]+)/gm)].map(([, flag = ""]) => flag));
}

it.each(["lower", "run", "verify", "explain", "calibrate"] as const)(
  "every option of braid %s has its row",
  (command) => {
    const flags = flagsIn("docs/command-line.md");
    expect(namesOf(command).filter((name) => !flags.has(flagOf(name)))).toEqual([]);
  },
);

it("every option of braid compile has its row", () => {
  const flags = flagsIn("docs/command-line.md");
  const all = [
    ...namesOf("compile").map(flagOf),
    ...Object.entries(compileRows).map(([name, row]) => flagOfRow(name, row)),
  ];
  expect(all.filter((flag) => !flags.has(flag))).toEqual([]);
});

it("every option of braid bench has its row", () => {
  const flags = flagsIn("docs/benchmark.md");
  const all = [
    ...namesOf("bench").map(flagOf),
    ...Object.entries(benchRows).map(([name, row]) => flagOfRow(name, row)),
  ];
  expect(all.filter((flag) => !flags.has(flag))).toEqual([]);
});

it("writes a table after its marker, in place of the one that is there, and keeps what follows", () => {
  const page = "# Page\n\n<!-- options: calibrate -->\n\n| old |\n| --- |\n\nMore.\n";
  const written = withOptionTables(page);
  expect(written).toMatch(/^# Page\n\n<!-- options: calibrate -->\n\n\| flag .*`-o, --out file` .*\|\n\nMore\.\n$/s);
  expect(written).not.toContain("old");
  expect(withOptionTables(written)).toBe(written);
  expect(() => withOptionTables("<!-- options: nothing -->\n")).toThrow("there is no table of options nothing");
});
