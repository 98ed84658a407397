/**
 * Output files of `bench`, `calibrate` and `explain`. Whether they can be written is checked before the work,
 * which may be long.
 */
import { access, constants, writeFile } from "node:fs/promises";
import path from "node:path";
import { fail } from "../../diagnostics/diagnostic.ts";
import { systemReason } from "../../support/system-reason.ts";

/** Throws `file-unwritable`, which names `flag`, if the folder does not exist or cannot be written to. */
export async function requireOutput(flag: string, file: string): Promise<void> {
  await access(path.dirname(file), constants.W_OK).catch((error: unknown) => unwritable(flag, file, error));
}

/** Throws `file-unwritable`. */
export async function writeOutput(flag: string, file: string, text: string | readonly string[]): Promise<void> {
  await writeFile(file, text).catch((error: unknown) => unwritable(flag, file, error));
}

function unwritable(flag: string, file: string, error: unknown): never {
  return fail({
    code: "file-unwritable",
    message: "the file cannot be written",
    place: { kind: "option", text: `${flag} ${file}` },
    found: systemReason(error),
    expected: "a file in a folder that exists and can be written to",
    help: "make the folder, or name another file",
  });
}
