/**
 * Compiles emulated kernels. cuda-on-cpu.hpp is precompiled, because it takes longer than the kernels that include it.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";

/**
 * What changes the code. A precompiled header serves compilations with the same ones alone; fake-libraries.cpp names
 * them too.
 */
const flags = ["-std=c++17", "-O1", "-w", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing"];

const cache = path.resolve(import.meta.dirname, "../../../../node_modules/.cache/braid-tests");
const header = "cuda-on-cpu.hpp";

/** Why nothing can be emulated here; null if it can. */
export function emulationObstacle(): string | null {
  if (process.arch !== "x64") return "kernels are emulated on x64 only";
  try {
    execFileSync("g++", ["--version"], { stdio: "ignore" });
    return null;
  } catch {
    return "there is no g++ to compile kernels with";
  }
}

export function compile(args: readonly string[]): void {
  execFileSync("g++", [...flags, ...args], { stdio: "pipe" });
}

/** The folder of the precompiled header. */
export function headerFolder(): string {
  return builtFolder("header", [], (folder) => {
    const copy = path.join(folder, header);
    copyFileSync(path.join(import.meta.dirname, header), copy);
    compile(["-x", "c++-header", copy, "-o", `${copy}.gch`]);
  });
}

/**
 * A folder that `build` fills, once for these sources and cuda-on-cpu.hpp: other test files, processes and runs find it
 * as it is.
 */
export function builtFolder(name: string, sources: readonly string[], build: (folder: string) => void): string {
  const hash = createHash("sha256")
    .update(flags.join(" "))
    .update(execFileSync("g++", ["--version"]));
  for (const source of [path.join(import.meta.dirname, header), ...sources]) hash.update(readFileSync(source));
  const folder = path.join(cache, `${name}-${hash.digest("hex").slice(0, 16)}`);
  if (existsSync(folder)) return folder;
  mkdirSync(cache, { recursive: true });
  const own = mkdtempSync(path.join(cache, "building-"));
  build(own);
  try {
    renameSync(own, folder);
  } catch {
    // Another process was faster.
    rmSync(own, { recursive: true });
  }
  return folder;
}

const weekMs = 7 * 24 * 3600 * 1000;

/** The folder of compiled kernels, named by their sources: later runs find them, unless none did for a week. */
export function kernelFolder(): string {
  const folder = path.join(cache, "kernels");
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(folder)) {
    const file = path.join(folder, name);
    // Another process may have removed it.
    const { mtimeMs = Infinity } = statSync(file, { throwIfNoEntry: false }) ?? {};
    if (Date.now() - mtimeMs > weekMs) rmSync(file, { force: true });
  }
  return folder;
}

/** A program of this text, which includes the header; it is compiled unless an earlier run has done so. */
export function programOf(text: string, args: readonly string[]): string {
  const folder = kernelFolder();
  const hash = createHash("sha256").update([text, ...args, headerFolder()].join("\n"));
  const program = path.join(folder, `program-${hash.digest("hex").slice(0, 32)}`);
  if (existsSync(program)) {
    utimesSync(program, new Date(), new Date());
    return program;
  }
  const own = mkdtempSync(path.join(cache, "building-"));
  const source = path.join(own, "kernels.cpp");
  try {
    writeFileSync(source, text);
    compile([...args, source, "-o", path.join(own, "program")]);
    renameSync(path.join(own, "program"), program);
  } finally {
    rmSync(own, { recursive: true });
  }
  return program;
}
