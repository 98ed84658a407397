/**
 * Writes a file beside its destination and then renames it: readers never see half a file, and an older one stays until
 * the new one is complete.
 */
import { createWriteStream } from "node:fs";
import { realpath, rename, rm } from "node:fs/promises";
import path from "node:path";
import { pid } from "node:process";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

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
