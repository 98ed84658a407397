/**
 * Files of the package that runs. Modules find them from its root, because a bundle moves code to other folders than
 * the source's.
 */
import { existsSync, readFileSync } from "node:fs";
import { invariant } from "../support/invariant.ts";

/** The URL of a file or a folder of the package, given relative to its package.json. Folders end in a slash. */
export function packageFile(name: string): URL {
  return new URL(name, packageRoot());
}

function packageRoot(): URL {
  let folder = new URL("./", import.meta.url);
  while (!existsSync(new URL("package.json", folder))) {
    const above = new URL("../", folder);
    invariant(above.href !== folder.href, "Braid's modules lie below its package.json", { module: import.meta.url });
    folder = above;
  }
  return folder;
}

/** The version of Braid. */
export function packageVersion(): string {
  const text = readFileSync(packageFile("package.json"), "utf8");
  const [, version = "unknown"] = /"version": "([^"]+)"/.exec(text) ?? [];
  return version;
}
