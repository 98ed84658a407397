/**
 * The files that the built command line loads at start. The test counts files and bytes, because a clock would measure
 * the machine.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const run = promisify(execFile);
const root = path.resolve(import.meta.dirname, "../..");
const dist = path.join(root, "dist");
const packages = path.join(root, "node_modules");
const example = path.join(root, "examples/nvfuser/allgather-matmul.ts");
let work: string;

beforeAll(() => {
  work = mkdtempSync(path.join(tmpdir(), "braid-start-"));
});
afterAll(() => {
  rmSync(work, { recursive: true });
});

/** Writes down every ES module when a thread loads it, and every CommonJS module of the main thread at the end. */
const spy = (record: string): string => `
import { appendFileSync } from "node:fs";
import { createRequire, register } from "node:module";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { isMainThread } from "node:worker_threads";
const record = ${JSON.stringify(record)};
const hooks = \`
  import { appendFileSync } from "node:fs";
  export function load(url, context, next) {
    appendFileSync(\${JSON.stringify(record)}, url + "\\\\n");
    return next(url, context);
  }
\`;
register("data:text/javascript," + encodeURIComponent(hooks));
if (isMainThread) process.on("exit", () => {
  for (const file of Object.keys(createRequire(import.meta.url).cache)) appendFileSync(record, pathToFileURL(file) + "\\n");
});
`;

interface Loaded {
  /** Of dist. */
  readonly files: readonly string[];
  readonly bytes: number;
  /** Names of the packages in node_modules. */
  readonly packages: readonly string[];
}

async function loadedBy(...args: readonly string[]): Promise<Loaded> {
  const record = path.join(work, `${args[0]}.txt`);
  const preload = path.join(work, "spy.mjs");
  writeFileSync(preload, spy(record));
  // By the environment, which threads inherit.
  // oxlint-disable-next-line node/no-process-env
  const env = { ...process.env, NODE_OPTIONS: `--import ${pathToFileURL(preload).href}` };
  await run(process.execPath, [path.join(dist, "cli/main.js"), ...args], { env });
  const urls = readFileSync(record, "utf8").trim().split("\n");
  const all = [...new Set(urls)].filter((url) => url.startsWith("file:")).map((url) => fileURLToPath(url));
  const files = below(dist, all);
  const bytes = files.reduce((sum, file) => sum + statSync(path.join(dist, file)).size, 0);
  return { files, bytes, packages: [...new Set(below(packages, all).map((file) => file.split(path.sep)[0] ?? ""))] };
}

function below(folder: string, all: readonly string[]): readonly string[] {
  return all.filter((file) => file.startsWith(folder + path.sep)).map((file) => path.relative(folder, file));
}

describe("the start of the command line", () => {
  it("--version loads the parser of the command line alone", async () => {
    const loaded = await loadedBy("--version");
    expect(loaded.files).toContain(path.normalize("cli/main.js"));
    expect(loaded.files.length).toBeLessThan(10);
    expect(loaded.bytes).toBeLessThan(40e3);
    expect(loaded.packages.toSorted()).toEqual(["commander", "picocolors"]);
  });

  it("lower loads few files, and no table, native library or worker", async () => {
    const loaded = await loadedBy("lower", example, "--devices", "2");
    expect(loaded.files.length).toBeLessThan(60);
    expect(loaded.bytes).toBeGreaterThan(400e3);
    expect(loaded.bytes).toBeLessThan(1.6e6);
    expect(loaded.files).toContain(path.normalize("cli/program/apart/build-thread.js"));
    // jiti is the thread's.
    expect(loaded.packages.toSorted()).toEqual(["commander", "picocolors", "valibot"]);
  });
});
