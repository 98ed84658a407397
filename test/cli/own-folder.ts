/** A folder for the program files of one test file, or of one `describe`. */
import { afterAll } from "vitest";
import { type ProgramFolder, programFolder } from "./captured-cli.ts";

export function ownFolder(): ProgramFolder {
  const folder = programFolder();
  afterAll(folder.remove);
  return folder;
}
