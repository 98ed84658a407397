/** The folder of a plan: how it is read and written. */
import { access, constants, mkdir } from "node:fs/promises";
import path from "node:path";
import { readRegularFile } from "../../backends/regular-file.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import type { PlanFiles } from "../../plan/make-plan.ts";
import { type Plan, readPlan } from "../../plan/read-plan.ts";
import { systemReason } from "../../support/wording.ts";
import { replaceFile } from "../terminal/output-file.ts";

/** Throws `file-unreadable` and what `readPlan` throws. */
export async function readPlanFolder(file: string): Promise<Plan> {
  const folder = path.basename(file) === "plan.json" ? path.dirname(file) : file;
  return readPlan(folder, (name) =>
    readRegularFile(path.join(folder, name)).catch((error: unknown) => unreadable(folder, name, error)),
  );
}

/** Makes the folder. Throws `file-unwritable`. */
export async function requirePlanFolder(folder: string): Promise<void> {
  const failed: unknown = await mkdir(path.join(folder, "kernels"), { recursive: true }).catch(
    (error: unknown) => error,
  );
  await access(path.join(folder, "kernels"), constants.W_OK).catch((error: unknown) =>
    unwritable(folder, failed instanceof Error ? failed : error),
  );
}

/** Answers with the bytes of all files. plan.json is the last, so that a plan is never half of two. */
export async function writePlanFolder(folder: string, files: PlanFiles): Promise<number> {
  let bytes = 0;
  for (const [name, text] of files) {
    const content = new TextEncoder().encode(text);
    bytes += content.length;
    await replaceFile(path.join(folder, name), [content]).catch((error: unknown) => unwritable(folder, error));
  }
  return bytes;
}

function unreadable(folder: string, name: string, error: unknown): never {
  return fail("file-unreadable", "a plan's file cannot be read", {
    place: { kind: "file", path: path.join(folder, name) },
    found: systemReason(error),
    expected: "a folder that braid compile wrote, with all of its files",
    help: "name that folder, or make the plan again: braid compile FILE -o FOLDER",
  });
}

function unwritable(folder: string, error: unknown): never {
  return fail("file-unwritable", "a plan cannot be written", {
    place: { kind: "option", text: "-o" },
    found: `${folder}: ${systemReason(error)}`,
    expected: "a folder that can be made and written",
    help: "choose another folder",
  });
}
