/** The generated parts of docs/ are what the code says now; `npm run docs` writes them anew. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { generatedDocs } from "../../scripts/generated-docs.ts";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");

it.each([...generatedDocs(root)])("%s", (path, text) => {
  expect(readFileSync(join(root, path), "utf8")).toBe(text);
});
