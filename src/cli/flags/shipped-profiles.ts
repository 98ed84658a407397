/** The machine profiles that come with Braid: `profiles/NAME.json` of the package, wherever it is installed. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const folder = new URL("../../../profiles/", import.meta.url);
const extension = ".json";

/** In alphabetical order; none where the folder is missing, as in a copy of the built files alone. */
export function shippedProfiles(): readonly string[] {
  try {
    return readdirSync(fileURLToPath(folder))
      .filter((file) => file.endsWith(extension))
      .map((file) => file.slice(0, -extension.length))
      .sort();
  } catch {
    return [];
  }
}

/** The text of a shipped profile; null for a name that there is not. */
export function readShippedProfile(name: string): string | null {
  return shippedProfiles().includes(name) ? readFileSync(new URL(`${name}${extension}`, folder), "utf8") : null;
}
