/**
 * The file of `--trace`. It is written beside its destination and then renamed: readers never see half a trace, and an
 * older trace stays until the new one is complete.
 */
import { createWriteStream } from "node:fs";
import { access, constants, realpath, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import { pid } from "node:process";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fail } from "../../diagnostics/diagnostic.ts";
import { systemReason } from "../../support/system-reason.ts";

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
  // Replaces the target of a symbolic link, not the link.
  const place = await realpath(file).catch(() => file);
  const temporary = path.join(path.dirname(place), `.${path.basename(place)}.${pid}.tmp`);
  try {
    const stream = createWriteStream(temporary);
    await pipeline(Readable.from(pieces), stream);
    await rename(temporary, place);
    return { path: file, bytes: stream.bytesWritten };
  } catch (error) {
    await rm(temporary, { force: true });
    return unwritable(file, systemReason(error));
  }
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
