/**
 * Output files of `bench`, `calibrate` and `explain`. Whether they can be written is checked before the work,
 * which may be long.
 */
import { createWriteStream } from "node:fs";
import { access, constants, realpath, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { pid } from "node:process";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fail } from "../../diagnostics/diagnostic.ts";
import { systemReason } from "../../support/wording.ts";

/** Throws `file-unwritable`, which names `flag`, if the folder does not exist or cannot be written to. */
export async function requireOutput(flag: string, file: string): Promise<void> {
  await access(path.dirname(file), constants.W_OK).catch((error: unknown) => unwritable(flag, file, error));
}

/** Throws `file-unwritable`. */
export async function writeOutput(flag: string, file: string, text: string | readonly string[]): Promise<void> {
  await writeFile(file, text).catch((error: unknown) => unwritable(flag, file, error));
}

function unwritable(flag: string, file: string, error: unknown): never {
  return fail("file-unwritable", "the file cannot be written", {
    place: { kind: "option", text: `${flag} ${file}` },
    found: systemReason(error),
    expected: "a file in a folder that exists and can be written to",
    help: "make the folder, or name another file",
  });
}

// Writes a file beside its destination and then renames it: readers never see half a file, and an older one stays until
// the new one is complete.

/** Writes the pieces one after the other, and answers with their number of bytes. Throws the system's errors. */
export async function replaceFile(file: string, pieces: Iterable<string | Uint8Array>): Promise<number> {
  // Replaces the target of a symbolic link, not the link.
  const place = await realpath(file).catch(() => file);
  const temporary = path.join(path.dirname(place), `.${path.basename(place)}.${pid}.tmp`);
  try {
    const stream = createWriteStream(temporary);
    await pipeline(Readable.from(pieces), stream);
    await rename(temporary, place);
    return stream.bytesWritten;
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
