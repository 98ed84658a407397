/** Tells flight records and traces of PyTorch, by what they begin with, from programs and plans. */
import { readdir } from "node:fs/promises";
import path from "node:path";
import { readRegularFile } from "../../backends/regular-file.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { systemReason } from "../../support/wording.ts";
import { isPlan } from "../plan/is-plan.ts";
import { isDumpFile, isModelFile, startOf } from "./dump-file.ts";

/** A kind of record, one of each rank: what wrote it, what it is called, and how it begins. */
export interface RecordKind {
  readonly name: string;
  readonly magic: RegExp;
  /** `flight records`, which `verb` takes. */
  readonly what: string;
  readonly verb: string;
}

/**
 * The records among FILES, and those in folders of them; null for one file that is something else. Throws
 * `option-value` if some of several files are no records.
 */
export async function recordFilesIn(files: readonly string[], kind: RecordKind): Promise<readonly string[] | null> {
  const found = await Promise.all(files.map((file) => recordsAt(file, kind)));
  const other = found.findIndex((each) => each.length === 0);
  if (other < 0) return found.flat();
  if (files.length === 1) return null;
  return fail("option-value", `several files can be ${kind.verb} only if they are ${kind.what}`, {
    place: { kind: "option", text: files.length > 2 ? "FILES" : files.join(" ") },
    found: `${files[other]}, which is none`,
    expected: `one program, or ${kind.what} of ${kind.name}, one of each rank`,
    help: "pass one file, or leave out what is none",
  });
}

async function recordsAt(file: string, kind: RecordKind): Promise<readonly string[]> {
  if (isDumpFile(file) || isModelFile(file) || (await isPlan(file))) return [];
  const names = await readdir(file).catch(() => null);
  const files = names === null ? [file] : names.toSorted().map((name) => path.join(file, name));
  return files.filter((each) => kind.magic.test(startOf(each)));
}

/** `what`: `flight record`. Throws `file-unreadable`. */
export function readRecord(file: string, what: string, { name }: Pick<RecordKind, "name">): Promise<Buffer> {
  return readRegularFile(file).catch((error: unknown) =>
    fail("file-unreadable", `a ${what} cannot be read`, {
      place: { kind: "file", path: file },
      found: systemReason(error),
      expected: `a readable file of ${name}`,
      help: "check the path",
    }),
  );
}
