/** The file of `--trace`. */
import { access, constants, stat } from "node:fs/promises";
import path from "node:path";
import { fail } from "../../diagnostics/diagnostic.ts";
import { systemReason } from "../../support/system-reason.ts";
import { replaceFile } from "../terminal/replace-file.ts";

export interface TraceFile {
  /** The path that the user gave. */
  readonly path: string;
  readonly bytes: number;
}

/** Throws `file-unwritable` if the file cannot be created or replaced. Call it before the run, which may be long. */
export async function requireTraceFile(file: string): Promise<void> {
  const folder = path.dirname(file);
  const found = await stat(folder).catch((error: unknown) => unwritable(file, `${folder}: ${systemReason(error)}`));
  if (!found.isDirectory()) unwritable(file, `${folder}: not a folder`);
  await access(folder, constants.W_OK).catch((error: unknown) => unwritable(file, `${folder}: ${systemReason(error)}`));
  const old = await stat(file).catch(() => null);
  if (old !== null && !old.isFile())
    unwritable(file, `${file}: ${old.isDirectory() ? "a folder" : "not a regular file"}`);
}

/** Writes the pieces one after the other. Throws `file-unwritable`, and then leaves an older file unchanged. */
export async function writeTraceFile(file: string, pieces: Iterable<string>): Promise<TraceFile> {
  const bytes = await replaceFile(file, pieces).catch((error: unknown) => unwritable(file, systemReason(error)));
  return { path: file, bytes };
}

function unwritable(file: string, found: string): never {
  return fail({
    code: "file-unwritable",
    message: "the trace cannot be written",
    place: { kind: "option", text: `--trace ${file}` },
    found,
    expected: "a file in a folder that exists and can be written to",
    help: "make the folder, or name another file",
  });
}
