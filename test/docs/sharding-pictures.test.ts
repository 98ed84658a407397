/**
 * The pictures of docs/sharding.md: test/fixtures/sharding/NAME.txt has the lines of NAME.ts between `// page` and
 * `// end`, and what they make of the tensors. `npx vitest run test/docs -u` and `npm run docs` write them anew.
 */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { drawn, type Picture } from "../support/shard-picture.ts";

const folder = path.resolve(import.meta.dirname, "../fixtures/sharding");
const names = readdirSync(folder).flatMap((name) => (name.endsWith(".ts") ? [name.slice(0, -3)] : []));

it.each(names)("%s", async (name) => {
  const file = path.join(folder, `${name}.ts`);
  const { default: picture } = (await import(file)) as { readonly default: Picture };
  await expect(`${shown(readFileSync(file, "utf8"))}\n\n${drawn(picture)}\n`).toMatchFileSnapshot(
    path.join(folder, `${name}.txt`),
  );
});

it("every picture is on a page", () => {
  const docs = path.resolve(import.meta.dirname, "../../docs");
  const pages = readFileSync(path.join(docs, "sharding.md"), "utf8");
  const places = (name: string): readonly string[] => [
    `<!-- fixture: sharding/${name} -->`,
    `](../test/fixtures/sharding/${name}.txt)`,
  ];
  expect(names.filter((name) => !places(name).some((place) => pages.includes(place)))).toEqual([]);
});

function shown(source: string): string {
  const [, lines = ""] = /^ *\/\/ page\n(.*?)^ *\/\/ end$/ms.exec(source) ?? [];
  return lines.replaceAll(/^ {2}/gm, "").trimEnd();
}
