/** The diagnostic of a plan whose files are not as `braid compile` writes them. */
import { fail, type Place } from "../diagnostics/diagnostic.ts";

export function planPlace(folder: string, file: string): Place {
  return { kind: "file", path: `${folder.replace(/\/+$/, "")}/${file}` };
}

export function planInvalid(folder: string, file: string, found: string, expected: string): never {
  return fail({
    code: "plan-invalid",
    message: "a plan's file is not as braid compile wrote it",
    place: planPlace(folder, file),
    found,
    expected,
    help: "make the plan again: braid compile FILE -o FOLDER",
  });
}
