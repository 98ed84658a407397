/**
 * The layers of src/ (docs/architecture.md): a folder imports only the folders that its row names. The files beside the
 * folders are the package's entry points; nothing but the executor and the command line imports them. bench/ and the
 * playground lie beside src and import it.
 */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";

const data = ["support", "diagnostics", "numerics", "ir", "commands"];
const core = [
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

/** What each folder of src/ may import besides itself. `.` stands for the entry points. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  support: [],
  diagnostics: ["support"],
  numerics: ["support", "diagnostics"],
  ir: ["support", "diagnostics", "numerics"],
  host: ["support", "diagnostics", "numerics", "ir"],
  import: ["support", "diagnostics", "numerics", "ir", "host", "oracle"],
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
  compile: core,
  tune: [...core, "compile"],
  explain: [...core, "compile", "tune"],
  report: [...core, "compile", "explain"],
  backends: [...data, "machine", "kernels", "trace", "compile"],
  plan: [...core, "compile", "backends"],
  launch: ["support", "diagnostics", "commands", "trace", "backends"],
  executor: [...core, "compile", "tune", "backends", "launch", "."],
  cli: [...core, "import", "compile", "tune", "backends", "launch", "executor", "explain", "plan", "report", "."],
  ".": [...core, "import", "compile", "tune", "explain", "backends", "executor"],
};

/** What the playground, which runs in browsers, may import of src/. A replay runs a program on the CPU back end's machine. */
const playgroundMayImport: readonly string[] = [
  ...core,
  "import",
  "compile",
  "explain",
  "report",
  "backends",
  "executor",
  ".",
];

/**
 * The executor loads back ends by their entry points when they are first asked for; the package's entry exports the
 * executor.
 */
const knownPairs: readonly string[] = ["executor and .", ". and executor"];

const source = path.resolve(import.meta.dirname, "../../src");

interface Import {
  /** Both relative to src. */
  readonly file: string;
  readonly imported: string;
}

/** The imports of a file by relative paths, those of types included. */
function importsOf(file: string, text: string): readonly Import[] {
  return ts.preProcessFile(text).importedFiles.flatMap(({ fileName }) => {
    if (!fileName.startsWith(".")) return [];
    return [{ file, imported: path.relative(source, path.resolve(source, path.dirname(file), fileName)) }];
  });
}

/** The folder of src in which a file lies; `.` for one beside the folders. */
function folderOf(file: string): string {
  const [first = "", ...rest] = file.split(path.sep);
  return rest.length === 0 ? "." : first;
}

/** The one way from src to bench/: `braid bench` loads its command when it is called. */
const loadsBench: Import = {
  file: path.join("cli", "cli.ts"),
  imported: path.join("..", "bench", "cli", "command.ts"),
};

/** Which ranks are alike is one proof: what is scheduled for one of them is verified for one of them. */
const symmetry = path.join("verify", "classes", "");

function isAllowed({ file, imported }: Import): boolean {
  if (file === loadsBench.file && imported === loadsBench.imported) return true;
  const [from, to] = [folderOf(file), folderOf(imported)];
  if (from === "schedule" && imported.startsWith(symmetry)) return true;
  return from === to || (mayImport[from] ?? []).includes(to);
}

describe("layers", () => {
  const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
  const imports = files.flatMap((file) => importsOf(file, readFileSync(path.join(source, file), "utf8")));

  it("has a row for every folder of src", () => {
    expect(Object.keys(mayImport).toSorted()).toEqual([...new Set(files.map(folderOf))].toSorted());
  });

  it.each(Object.keys(mayImport))("%s imports only what it may", (folder) => {
    const own = imports.filter(({ file }) => folderOf(file) === folder);
    expect(own.filter((each) => !isAllowed(each))).toEqual([]);
  });

  it("the playground imports nothing of the command line", () => {
    const folder = path.resolve(source, "../playground");
    const own = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => /\.tsx?$/.test(file));
    const found = own
      .map((file) => path.join("..", "playground", file))
      .flatMap((file) => importsOf(file, readFileSync(path.join(source, file), "utf8")))
      .filter(({ imported }) => !imported.startsWith(".."));
    expect(found.length).toBeGreaterThan(50);
    expect(found.filter(({ imported }) => !playgroundMayImport.includes(folderOf(imported)))).toEqual([]);
  });

  it("src loads bench when `braid bench` is called, and not before", () => {
    const found = imports.filter(({ imported }) => imported.startsWith(path.join("..", "bench")));
    expect(found).toEqual([loadsBench]);
    const text = readFileSync(path.join(source, loadsBench.file), "utf8");
    expect(text).toContain('await import("../../bench/cli/command.ts")');
  });

  it("what the package has of bench imports src, and no script beside it", () => {
    const bench = path.resolve(source, "../bench");
    const own = ["cli", "compare"].flatMap((folder) =>
      readdirSync(path.join(bench, folder), { recursive: true, encoding: "utf8" })
        .filter((file) => file.endsWith(".ts"))
        .map((file) => path.join("..", "bench", folder, file)),
    );
    const found = own.flatMap((file) => importsOf(file, readFileSync(path.join(source, file), "utf8")));
    const packed = /^\.\.\/bench\/(?:cli|compare)\//;
    expect(own.length).toBeGreaterThan(30);
    expect(found.filter(({ imported }) => imported.startsWith("..") && !packed.test(imported))).toEqual([]);
  });

  it("goes one way: no two folders may import each other", () => {
    const both = Object.entries(mayImport).flatMap(([from, targets]) =>
      targets.filter((to) => mayImport[to]?.includes(from)).map((to) => `${from} and ${to}`),
    );
    expect(both.filter((pair) => !knownPairs.includes(pair))).toEqual([]);
  });

  it("reports an import upward, in every form", () => {
    const text = `import { a } from "../passes/a.ts";
      import type { B } from "../cli/b.ts";
      export * from "../verify/c.ts";
      const d = () => import("../index.ts");
      import type { E } from "../../bench/compare/e.ts"; export type { E };
      import { own } from "../support/own.ts"; import other from "node:fs"; void [a, own, other, d]; export type { B };`;
    const found = importsOf(path.join("ir", "some.ts"), text).filter((each) => !isAllowed(each));
    expect(found.map(({ imported }) => imported).toSorted()).toEqual(
      ["passes/a.ts", "cli/b.ts", "verify/c.ts", "index.ts", "../bench/compare/e.ts"].toSorted(),
    );
  });
});
