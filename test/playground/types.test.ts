/** Completion in the playground's editor: names and signatures come from Braid's own declarations. */
import path from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { createTypesService } from "../../playground/typescript/service.ts";
import { typeFiles } from "../../scripts/type-files.ts";

const root = path.resolve(import.meta.dirname, "../..");
const files = typeFiles(root);
const service = createTypesService(new Map(Object.entries(files)));

/** `|` is the cursor. */
function at(text: string): readonly [string, number] {
  return [text.replace("|", ""), text.indexOf("|")];
}
const names = (text: string): readonly string[] => service.complete(...at(text)).map(({ name }) => name);

it("has what its declarations import", () => {
  const missing = Object.entries(files).flatMap(([file, text]) =>
    ts
      .preProcessFile(text, true, true)
      .importedFiles.map(({ fileName }) =>
        path.posix.join(path.posix.dirname(file), fileName.replace(/\.ts$/u, ".d.ts")),
      )
      .filter((imported) => !Object.hasOwn(files, imported)),
  );
  expect(missing).toEqual([]);
  expect(files["/braid/index.d.ts"]).toContain("./ir/api/fusion.ts");
});

describe("completion", () => {
  it("has the methods of a tensor, and no names of elsewhere", () => {
    const found = names(
      'import { Fusion } from "@braid-compiler/braid";\nconst x = new Fusion().input([8], "float");\nx.|',
    );
    expect(found).toContain("outerSplit");
    expect(found).toContain("setDeviceMesh");
    expect(found).not.toContain("Fusion");
  });

  it("has the parallel types of a call, and the exports of braid", () => {
    const types = names(
      'import { Fusion } from "@braid-compiler/braid";\nnew Fusion().input([8], "float").axis(0).parallelize("|")',
    );
    expect(types).toContain("Stream");
    expect(names('import { | } from "@braid-compiler/braid";')).toContain("DeviceMesh");
  });

  it("has the language's names and no browser's", () => {
    expect(names("[1].|")).toContain("toSorted");
    expect(names("|")).not.toContain("document");
  });
});

it("explains a name with its signature and its comment", () => {
  const found = service.explain(...at('import { Fusion } from "@braid-compiler/braid";\nnew |Fusion();'));
  expect(found?.signature).toContain("new Fusion");
  expect(found?.documentation.length).toBeGreaterThan(10);
  expect(service.explain(...at("  | "))).toBeNull();
});
