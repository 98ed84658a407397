/** The generated parts of docs/ are up to date; `npm run docs` regenerates them. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { cli } from "../cli/captured-cli.ts";
import { generatedDocs } from "../../scripts/generated-docs.ts";
import { withOptionTables } from "../../scripts/option-tables.ts";
import { compileRows } from "../../src/cli/compile/compile-plan.ts";
import { benchRows } from "../../bench/compare/bench-options.ts";
import { flagOfRow, namesOf, type OptionRow, optionRow, wordOf } from "../../src/compile/options.ts";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");

it.each([...generatedDocs(root)])("%s", (path, text) => {
  expect(readFileSync(join(root, path), "utf8")).toBe(text);
});

/** The flags and values in the first column of the tables that the site shows. */
function flagsIn(page: string): ReadonlySet<string> {
  const text = withOptionTables(readFileSync(join(root, page), "utf8"), "site");
  return new Set([...text.matchAll(/^\| `(?:-o, )?(-{0,2}[\w-]+)/gm)].map(([, flag = ""]) => flag));
}

/** What a table calls a row. */
function calledIn(name: string, row: OptionRow): string {
  return row.within === undefined ? flagOfRow(name, row) : wordOf(name, row);
}

it.each(["lower", "run", "verify", "explain", "calibrate"] as const)(
  "every option of braid %s has its row",
  (command) => {
    const flags = flagsIn("docs/command-line.md");
    expect(namesOf(command).filter((name) => !flags.has(calledIn(name, optionRow(name))))).toEqual([]);
  },
);

it.each([
  ["compile", "docs/command-line.md", compileRows],
  ["bench", "docs/benchmark.md", benchRows],
] as const)("every option of braid %s has its row", (command, page, own) => {
  const flags = flagsIn(page);
  const all = [
    ...namesOf(command).map((name) => calledIn(name, optionRow(name))),
    ...Object.entries<OptionRow>(own).map(([name, row]) => calledIn(name, row)),
  ];
  expect(all.filter((flag) => !flags.has(flag))).toEqual([]);
});

it("has at most 40 flags in all commands", async () => {
  const commands = ["lower", "run", "verify", "explain", "compile", "bench", "calibrate", "playground", "doctor"];
  const helps = await Promise.all(commands.map(async (command) => (await cli(command, "--help")).out));
  const flags = new Set(
    helps.flatMap((text) => [...text.matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gmu)].map(([, flag]) => flag)),
  );
  expect(flags).toContain("--schedule");
  expect(flags.size, [...flags].join(" ")).toBeLessThanOrEqual(40);
});

it("writes a table after its marker, in place of the one that is there, and keeps what follows", () => {
  const bare = "# Page\n\n<!-- options: calibrate -->\n\nMore.\n";
  const page = bare.replace("\nMore", "\n| old |\n| --- |\n\nMore");
  expect(withOptionTables(page, "page")).toBe(bare);
  const written = withOptionTables(page, "site");
  expect(written).toMatch(/^# Page\n\n<!-- options: calibrate -->\n\n\| flag .*`-o, --out file` .*\|\n\nMore\.\n$/s);
  expect(written).not.toContain("old");
  expect(withOptionTables(written, "site")).toBe(written);
  expect(withOptionTables("<!-- options: impl -->\n", "page")).toContain("| `form` ");
  expect(() => withOptionTables("<!-- options: nothing -->\n", "page")).toThrow("there is no table of options nothing");
});
