/**
 * Loads a program file (`.ts`, `.js`, `.mjs`) from anywhere on disk. jiti evaluates it and the files that it imports
 * by relative paths: it strips types on every Node that Braid supports, maps lines back, writes no cache, and lets
 * the package be the running instance.
 */
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import path from "node:path";
import { type Diagnostic, fail } from "../../diagnostics/diagnostic.ts";
import { isProgramFile, type ProgramFile } from "../../host/program-file.ts";
import { isFusion } from "../../ir/api/fusion.ts";
import { systemReason } from "../../support/wording.ts";
import { explainTraceText, isOwnTrace } from "./own-trace.ts";
import { runningBraid } from "./running-braid.ts";
import { createJiti, createSourceMaps, type SourceMaps } from "./source-maps.ts";
import { inUserCode } from "./user-code.ts";

const extensions = [".ts", ".mts", ".js", ".mjs"] as const;

/** What a program file imports, by name. */
export type ImportedModules = typeof runningBraid;

export interface LoadedProgram {
  readonly program: ProgramFile;
  /** Source maps of the file and of its imports. */
  readonly maps: SourceMaps;
}

/**
 * The program that `file` exports as its default. `modules`: what it imports by these names.
 * Throws `file-unreadable`, `program-threw`, `program-invalid`, and diagnostics of Braid calls in the file.
 */
export async function loadProgram(file: string, modules: ImportedModules = runningBraid): Promise<LoadedProgram> {
  const absolute = path.resolve(file);
  await requireFile(file, absolute);
  const maps = createSourceMaps();
  const jiti = createJiti(import.meta.url, {
    fsCache: false,
    moduleCache: false,
    interopDefault: false,
    sourceMaps: true,
    virtualModules: modules,
    transform: maps.transform,
  });
  // Reading a Proxy that the file exports runs its code, too. An object is returned, because a Proxy may seem a promise.
  const { program, ...refused } = await inUserCode(file, maps, async () => exportOf(await jiti.import(absolute)));
  if (program !== null) return { program, maps };
  return fail({
    code: "program-invalid",
    place: { kind: "file", path: file },
    ...refused,
    expected: "export default program({ ...parameters }, ({ devices, params }) => { ...; return fusion; })",
    help: "wrap the code that makes the Fusion in program(...) and export it as default",
  });
}

/** The default export of a module, or what is wrong with it. */
function exportOf(module: unknown): Pick<Diagnostic, "message" | "found"> & { readonly program: ProgramFile | null } {
  const exported = typeof module === "object" && module !== null && "default" in module ? module.default : undefined;
  if (exported === undefined) {
    return { program: null, message: "the program file has no default export", found: exportNames(module) };
  }
  const message = "the default export of the program file is not a program";
  return { program: isProgramFile(exported) ? exported : null, message, found: describe(exported) };
}

async function requireFile(file: string, absolute: string): Promise<void> {
  const problem = await unreadable(absolute);
  if (problem === undefined) return;
  fail("file-unreadable", "the program file cannot be read", {
    place: { kind: "file", path: file },
    found: problem,
    expected: `a readable file that ends in ${extensions.join(", ")}, or in .hir, .txt, .log, .out for a dump`,
    help: isOwnTrace(file)
      ? explainTraceText(file)
      : `check the path; it resolves to ${absolute}${problem === directory ? " (a plan has a plan.json)" : ""}`,
  });
}

const directory = "a directory";

/** The reason why a file cannot be a program file, if there is one. */
async function unreadable(absolute: string): Promise<string | undefined> {
  try {
    const information = await stat(absolute);
    if (information.isDirectory()) return directory;
    if (!information.isFile()) return "a device, socket or pipe";
    await access(absolute, constants.R_OK);
  } catch (error) {
    return systemReason(error);
  }
  const extension = path.extname(absolute);
  if (extensions.some((known) => known === extension)) return undefined;
  return extension === "" ? "no extension" : `a file that ends in ${extension}`;
}

function exportNames(module: unknown): string {
  const names = typeof module === "object" && module !== null ? Object.keys(module) : [];
  return names.length === 0 ? "no exports" : `exports ${names.join(", ")}`;
}

function describe(value: unknown): string {
  if (value === null) return "null";
  if (isFusion(value)) return "a Fusion";
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "another object" : `a ${typeof value}`;
}
