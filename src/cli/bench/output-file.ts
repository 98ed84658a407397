/** Files that `braid bench` writes: made before the measurement, which may be long, so that a bad name is told first. */
import { writeFile } from "node:fs/promises";
import { fail } from "../../diagnostics/diagnostic.ts";
import { systemReason } from "../system-reason.ts";

/** Throws `file-unwritable`; `flag` is named in it. */
export async function writeOutput(flag: string, file: string, text: string): Promise<void> {
  await writeFile(file, text).catch((error: unknown) =>
    fail({
      code: "file-unwritable",
      message: "the results cannot be written",
      place: { kind: "option", text: `${flag} ${file}` },
      found: systemReason(error),
      expected: "a file in a folder that exists and can be written to",
      help: "make the folder, or name another file",
    }),
  );
}
