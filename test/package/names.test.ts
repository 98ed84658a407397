/**
 * Names that modules of src/ export are unique: whoever reads or searches for one finds one thing. Vocabularies are left
 * out: modules that define the ops of the API once more (as oracle or as instructions of a generator) under its names.
 */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";

const src = path.join(import.meta.dirname, "../../src");

/** Entry points, which export what others define; the API's ops; what has an entry of the same name for each op. */
const vocabularies = /^(?:[a-z]+\.ts|ir\/api\/|oracle\/|numerics\/scalar\/|support\/wasm\/)/;

/** Meant: both stand for one thing, as a value on the host and in the IR. */
const meant: ReadonlySet<string> = new Set(["Tensor"]);

const exported = /^export (?:async )?(?:function\*?|const|interface|type|class) (\w+)/gm;

function duplicates(texts: ReadonlyMap<string, string>): readonly string[] {
  const files = new Map<string, string[]>();
  for (const [file, text] of texts)
    for (const name of new Set([...text.matchAll(exported)].map(([, found = ""]) => found)))
      files.set(name, [...(files.get(name) ?? []), file]);
  return [...files]
    .filter(([name, all]) => all.length > 1 && !meant.has(name))
    .map(([name, all]) => `${name}: ${all.join(", ")}`)
    .toSorted();
}

it("no two modules export one name", () => {
  const files = readdirSync(src, { recursive: true, encoding: "utf8" })
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => file.endsWith(".ts") && !vocabularies.test(file));
  expect(files.length).toBeGreaterThan(500);
  const texts = new Map(files.map((file) => [file, readFileSync(path.join(src, file), "utf8")]));
  expect(duplicates(texts)).toEqual([]);
});

it("a name of two modules is found, overloads are one name", () => {
  const texts = new Map([
    ["a.ts", "export function placeOf(): void\nexport function placeOf(): void {}\nexport type Box = 1;"],
    ["b.ts", "export interface Box {}\n// export const placeOf = 1"],
  ]);
  expect(duplicates(texts)).toEqual(["Box: a.ts, b.ts"]);
});
