/** Tells dumps and model files from program files. A program file loads no reader of either. */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import path from "node:path";
import { type MemoryModel, memoryModels } from "../../compile/memory-models.ts";
import { flagOf, type GivenOptions, type LoweringName, loweringNames, type Options } from "../../compile/options.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { type Loader, loaderOf, startBytes } from "../../import/loader.ts";

/** `.log` and `.txt`: a dump may be surrounded by other output. */
export const dumpExtensions = [".hir", ".txt", ".log", ".out"] as const;

export function isDumpFile(file: string): boolean {
  return isDumpName(file) && !isModelFile(file);
}

function isDumpName(file: string): boolean {
  const extension = path.extname(file);
  return dumpExtensions.some((known) => known === extension);
}

/** A file of a framework, which a row of the loaders reads. */
export function isModelFile(file: string): boolean {
  return loaderOfFile(file) !== null;
}

/** By the name of the file, or by its first bytes if a dump may have that name. */
export function loaderOfFile(file: string): Loader | null {
  return loaderOf(file, isDumpName(file) ? startOf(file) : "");
}

/** The first bytes, a character each; none of what is no file that can be read, which its reader refuses. */
export function startOf(name: string): string {
  try {
    const file = openSync(name, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    try {
      const bytes = Buffer.alloc(startBytes);
      return fstatSync(file).isFile() ? bytes.toString("latin1", 0, readSync(file, bytes, 0, startBytes, 0)) : "";
    } finally {
      closeSync(file);
    }
  } catch {
    return "";
  }
}

/**
 * The program file that a command evaluates: FILE, or the reference of a dump; null for a dump without one, and for a
 * model file. Throws `option-value`.
 */
export function fileToBuild(file: string, { reference }: Options<"reference">): string | null {
  if (!isDumpFile(file)) {
    if (reference === undefined) return isModelFile(file) ? null : file;
    return badReference(
      `${reference} for the ${isModelFile(file) ? "model" : "program"} file ${file}`,
      "a dump: --reference names the Fusion that a dump was made from",
      "leave --reference out; a file of host programs names its own: program(defaults, build, { reference })",
    );
  }
  if (reference === undefined || (!isDumpFile(reference) && !isModelFile(reference))) return reference ?? null;
  return badReference(
    `the ${isDumpFile(reference) ? "dump" : "model file"} ${reference}`,
    "a program file that returns a Fusion",
    "name a .ts, .js or .mjs file",
  );
}

export function badReference(found: string, expected: string, help: string): never {
  const place = { kind: "option", text: "--reference" } as const;
  return fail("option-value", "the reference cannot be used", { place, found, expected, help });
}

/** The model of memory and communicators that a file is compiled for: dumps are nvFuser's. */
export function memoryModelOf(file: string): MemoryModel {
  return isDumpFile(file) ? memoryModels.nvfuser : memoryModels.braid;
}

/**
 * Throws `option-value` for lowering options of a dump, which is already lowered. The protocol is allowed, because
 * `record` needs it.
 */
export function requireNotLowered(file: string, given: GivenOptions<LoweringName>): void {
  if (!isDumpFile(file)) return;
  const name = loweringNames.find((each) => each !== "protocol" && given[each] !== undefined);
  if (name === undefined) return;
  const flag = flagOf(name);
  fail("option-value", "a dump is already lowered", {
    place: { kind: "option", text: flag },
    found: `${flag} for the dump ${file}`,
    expected: `no lowering option other than ${flagOf("protocol")}`,
    help: `leave ${flag} out, or pass the program file that the dump was made from`,
  });
}
