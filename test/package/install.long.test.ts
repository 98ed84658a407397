/**
 * The package as users get it: packed, installed in an empty folder, run there and on a program file in a third folder.
 * Needs a registry or npm's cache for dependencies.
 */
import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readmeLibrary, readmeProgram } from "../support/readme.ts";

const root = path.resolve(import.meta.dirname, "../..");
const run = promisify(execFile);
let work: string;
let consumer: string;
let packed: readonly string[];

/** npm finds the folder's own configuration; nothing of the test run's reaches it. */
const npm = (cwd: string, ...args: readonly string[]): string =>
  execFileSync("npm", [...args], { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

beforeAll(() => {
  work = mkdtempSync(path.join(tmpdir(), "braid-package-"));
  consumer = path.join(work, "consumer");
  mkdirSync(consumer);
  // The build has run before the tests; packing again must not touch dist while others read it.
  const text = npm(root, "pack", "--ignore-scripts", "--json", "--pack-destination", work);
  const [information] = JSON.parse(text) as [{ filename: string; files: { path: string }[] }];
  packed = information.files.map((file) => file.path);
  writeFileSync(path.join(consumer, "package.json"), `{ "name": "consumer", "private": true, "type": "module" }\n`);
  npm(consumer, "install", "--no-audit", "--no-fund", "--prefer-offline", path.join(work, information.filename));
}, 180_000);

afterAll(() => {
  rmSync(work, { recursive: true });
});

const braid = (cwd: string, ...args: readonly string[]): Promise<{ stdout: string; stderr: string }> =>
  run(path.join(consumer, "node_modules/.bin/braid"), [...args], { cwd });

describe("the package", () => {
  it("holds what users need and nothing of the workshop", () => {
    for (const file of [
      "bench/cli/command.ts",
      "bench/peers/torch_peer.py",
      "docs/architecture.md",
      "examples/allgather-matmul.ts",
      "dist/index.js",
      "dist/index.d.ts",
      "dist/cli/main.js",
      "profiles/2xH200.json",
      "profiles/4xH200.json",
      "README.md",
      "LICENSE",
      "CHANGELOG.md",
    ]) {
      expect(packed).toContain(file);
    }
    expect(
      packed.filter((file) =>
        /^(test\/(?!README)|bench\/(?!cli\/|compare\/|peers\/|configs\/|NOTES|README|results\/README)|docs\/api|scripts|\.)|tsbuildinfo$|\.npmrc/.test(
          file,
        ),
      ),
    ).toEqual([]);
  });

  it("has what README links to", () => {
    const readme = readFileSync(path.join(root, "README.md"), "utf8");
    const links = [...readme.matchAll(/\]\(([^)#]+)[^)]*\)/g)].map(([, target = ""]) => target);
    const local = links.filter((target) => !target.includes("://"));
    expect(local.length).toBeGreaterThan(10);
    expect(local.filter((target) => !packed.includes(target))).toEqual([]);
  });

  it("installs few packages, and no script but koffi's", () => {
    const lock = JSON.parse(readFileSync(path.join(consumer, "package-lock.json"), "utf8")) as {
      packages: Record<string, { hasInstallScript?: boolean }>;
    };
    // koffi's, which is optional, looks for its prebuilt binary: lockfile.test.ts.
    const withScript = Object.entries(lock.packages).filter(([, entry]) => entry.hasInstallScript);
    expect(withScript.map(([place]) => place)).toEqual(["node_modules/koffi"]);
    // koffi lists one package per platform; one of them is installed.
    const own = Object.keys(lock.packages).filter((place) => !place.includes("@koromix/"));
    expect(own.length).toBeLessThan(20);
  });

  it("runs the README's program", async () => {
    writeFileSync(path.join(consumer, "program.ts"), readmeProgram());
    const { stdout, stderr } = await braid(consumer, "run", "program.ts", "--check");
    expect(stderr).toBe("");
    expect(stdout).toContain("passed");
  }, 60_000);

  it("runs a program file in a third folder, from a fourth", async () => {
    const elsewhere = path.join(work, "elsewhere/programs");
    mkdirSync(elsewhere, { recursive: true });
    writeFileSync(path.join(elsewhere, "program.ts"), readmeProgram());
    const { stdout, stderr } = await braid(work, "run", "elsewhere/programs/program.ts", "--devices", "2", "--check");
    expect(stderr).toBe("");
    expect(stdout).toContain("passed");
  }, 60_000);

  it("has the shipped profiles, by name and for programs", async () => {
    writeFileSync(path.join(consumer, "program.ts"), readmeProgram());
    const choose = ["--backend", "nccl", "--schedule", "auto", "--profile", "4xH200"];
    const { stdout } = await braid(consumer, "run", "program.ts", "--devices", "2", "--check", ...choose);
    expect(stdout).toMatch(/^schedule: .+ simulated schedules/m);
    expect(stdout).toContain("passed");
    writeFileSync(path.join(consumer, "profile.js"), shippedProfile);
    const read = await run(process.execPath, ["profile.js"], { cwd: consumer });
    expect(read.stdout).toContain("4 x NVIDIA H200");
  }, 60_000);

  it("runs benchmarks", async () => {
    const sizes = ["--devices", "2", "--set", "m=64,n=16,k=32", "--repeat", "2", "--check"];
    const { stdout } = await braid(work, "bench", "tp-columnwise", ...sizes);
    expect(stdout).toMatch(/^tp-columnwise m 64 n 16 k 32 float, 2 devices$/m);
  }, 60_000);

  it("is a library: the README's program, the subpaths, and the types of all", async () => {
    writeFileSync(path.join(consumer, "pipeline.ts"), readmeProgram());
    writeFileSync(path.join(consumer, "library.ts"), `${readmeLibrary()}\n${subpaths}`);
    // The console is all that the program needs beside the language.
    writeFileSync(path.join(consumer, "console.d.ts"), "declare const console: { log(...values: unknown[]): void };\n");
    const options = "--strict --module nodenext --target es2022 --lib es2023 --rewriteRelativeImportExtensions";
    const compiler = path.join(root, "node_modules/typescript/bin/tsc");
    const files = ["console.d.ts", "pipeline.ts", "library.ts"];
    const compiled = await run(process.execPath, [compiler, ...options.split(" "), ...files], {
      cwd: consumer,
    }).catch((error: unknown) => error as { stdout: string });
    expect(compiled.stdout).toBe("");
    const { stdout } = await run(process.execPath, ["library.js"], { cwd: consumer });
    expect(stdout).toMatch(/dtype: 'float',\s+shape: \[ 100, 320 \],\s+data: Float32Array\(32000\)/);
    expect(stdout).toContain("cpu cuda\n");
  }, 60_000);
});

const shippedProfile = `
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseProfile } from "@braid-compiler/braid";
const file = fileURLToPath(import.meta.resolve("@braid-compiler/braid/profiles/4xH200.json"));
console.log(parseProfile(readFileSync(file, "utf8"), file).machine);
`;

const subpaths = `
import { cpuBackend } from "@braid-compiler/braid/cpu";
import { cudaBackend } from "@braid-compiler/braid/cuda";
console.log(cpuBackend.name, cudaBackend.name);
`;
