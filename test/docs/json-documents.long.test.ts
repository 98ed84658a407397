/**
 * docs/json.md has the fields that commands print with --json: all that are always there, and no
 * others. test/cli/verify.test.ts does so for braid verify.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { cli } from "../cli/captured-cli.ts";

const root = path.resolve(import.meta.dirname, "../..");
const page = readFileSync(path.join(root, "docs/json.md"), "utf8");
const example = path.join(root, "examples/matmul-reduce-scatter.ts");
const bench = ["bench", "tp-columnwise", "--set", "m=32", "--devices", "2", "--repeat", "2", "--json"] as const;
const on = [example, "--devices", "2", "--json"];

interface Field {
  readonly name: string;
  readonly always: boolean;
}

function fieldsOf(heading: string): readonly Field[] {
  const section = page.split(/^## /m).find((each) => each.startsWith(`${heading}\n`)) ?? "";
  return [...section.matchAll(/^\| (`[^|]*)\| ([^|]*)\|/gm)].flatMap(([, names = "", when = ""]) =>
    [...names.matchAll(/`(\w+)`/g)].map(([, name = ""]) => ({ name, always: when.trim() === "" })),
  );
}

it.each([
  ["`braid run`", ["run", ...on, "--check", "--print", "timeline"]],
  ["`braid lower`", ["lower", ...on]],
  ["`braid explain`", ["explain", ...on, "--profile", "2xH200", "--what-if", "gemm=2x", "--schedule", "auto"]],
  ["`braid doctor`", ["doctor", "--json"]],
  ["An error", ["run", ...on, "--schedule", "streams=0"]],
  ["`braid bench`", bench],
])("%s", async (heading, args) => {
  const { out } = await cli(...args);
  expectFields(JSON.parse(out), heading);
});

it("rows of `braid bench`", async () => {
  const { out } = await cli(...bench);
  const { rows } = JSON.parse(out) as { readonly rows: readonly object[] };
  expect(rows.length).toBeGreaterThan(2);
  for (const row of rows) expectFields(row, "A row of `braid bench`");
});

function expectFields(document: unknown, heading: string): void {
  const names = Object.keys(document as object);
  const fields = fieldsOf(heading);
  expect(names.filter((name) => !fields.some((field) => field.name === name))).toEqual([]);
  expect(fields.filter(({ name, always }) => always && !names.includes(name))).toEqual([]);
}
