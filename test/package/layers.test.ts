/**
 * The layers of src/, as the lint rules enforce them: a folder that imports another one which the table does not name
 * is reported, and a folder may not be missing from the table.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const data = ["support", "diagnostics", "numerics", "ir", "commands"];
const all = [
  ...data,
  "host",
  "passes",
  "record",
  "schedule",
  "verify",
  "machine",
  "kernels",
  "oracle",
  "trace",
  "simulate",
];

/** What each folder of src/ may import. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  support: [],
  diagnostics: ["support"],
  numerics: ["support", "diagnostics"],
  ir: ["support", "diagnostics", "numerics"],
  host: ["support", "diagnostics", "numerics", "ir"],
  passes: ["support", "diagnostics", "numerics", "ir", "host"],
  commands: ["support", "diagnostics", "numerics", "ir", "host"],
  record: [...data, "host"],
  schedule: [...data, "host"],
  verify: data,
  machine: data,
  kernels: data,
  oracle: ["support", "diagnostics", "numerics", "ir"],
  trace: data,
  simulate: [...data, "kernels", "trace"],
  backends: [...data, "machine", "kernels", "trace"],
  launch: ["support", "diagnostics"],
  executor: [...all, "backends", "launch"],
  cli: [...all, "backends", "launch", "executor"],
};

const folders = Object.keys(mayImport);
const root = path.resolve(import.meta.dirname, "../..");
let work: string;
let reported: ReadonlySet<string>;

/** A copy of the layout in which every folder imports every other one, also from a nested folder. */
beforeAll(() => {
  work = mkdtempSync(path.join(tmpdir(), "braid-layers-"));
  // Without types, which these rules do not need and which need a project.
  const rules = readFileSync(path.join(root, ".oxlintrc.json"), "utf8").replace(
    '"typeAware": true',
    '"typeAware": false',
  );
  writeFileSync(path.join(work, ".oxlintrc.json"), rules);
  for (const from of folders) {
    for (const depth of [1, 2]) {
      const folder = path.join(work, "src", from, ...(depth === 2 ? ["nested"] : []));
      mkdirSync(folder, { recursive: true });
      for (const to of folders.filter((other) => other !== from)) {
        writeFileSync(path.join(folder, `${to}.ts`), `export * from "${"../".repeat(depth)}${to}/some-module.ts";\n`);
      }
      if (depth === 2) writeFileSync(path.join(folder, "own.ts"), `export * from "../some-module.ts";\n`);
    }
  }
  reported = restrictedImports(work);
}, 60_000);

afterAll(() => {
  rmSync(work, { recursive: true });
});

describe("layers", () => {
  it("has a row for every folder of src", () => {
    const present = readdirSync(path.join(root, "src"), { withFileTypes: true }).filter((entry) => entry.isDirectory());
    expect(folders).toEqual(expect.arrayContaining(present.map((entry) => entry.name)));
  });

  it.each(folders)("%s imports only what it may", (from) => {
    const others = folders.filter((to) => to !== from);
    const forbidden = others.filter((to) => !(mayImport[from] ?? []).includes(to));
    for (const prefix of [from, `${from}/nested`]) {
      const found = others.filter((to) => reported.has(`src/${prefix}/${to}.ts`));
      expect(found, prefix).toEqual(forbidden);
    }
    expect(reported).not.toContain(`src/${from}/nested/own.ts`);
  });
});

function restrictedImports(folder: string): ReadonlySet<string> {
  const oxlint = path.join(root, "node_modules/oxlint/bin/oxlint");
  let text: string;
  try {
    text = execFileSync(process.execPath, [oxlint, "--format", "json", "src"], { cwd: folder, encoding: "utf8" });
  } catch (error) {
    // Findings make oxlint end with status 1.
    text = (error as { stdout: string }).stdout;
  }
  const { diagnostics } = JSON.parse(text) as { diagnostics: { code: string; filename: string }[] };
  const restricted = diagnostics.filter(({ code }) => code.includes("no-restricted-imports"));
  return new Set(restricted.map(({ filename }) => filename));
}
