/** The command that runs a TypeScript file of these tests as a process of its own. */
import path from "node:path";
import process from "node:process";

const jiti = path.resolve(import.meta.dirname, "../../node_modules/jiti/lib/jiti-cli.mjs");

/** The arguments after Node's own path. */
export function typescriptFile(name: string): readonly [string, string] {
  return [jiti, path.join(import.meta.dirname, name)];
}

export const node = process.execPath;
