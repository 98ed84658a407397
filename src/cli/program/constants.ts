/** The constants that hold a program's tensors, from the lines of the user's files. */
import { readFile } from "node:fs/promises";
import type { Tensor } from "../../ir/domain.ts";
import type { Constants } from "../../ir/tensor-names.ts";
import { siteText } from "../../support/call-site.ts";
import { constantBefore } from "../../support/constant-name.ts";

/** Of a statement before the line of a call in it. */
const mostLines = 10;

/** Tensors of files that cannot be read have none. */
export async function constantsOf(tensors: readonly Tensor[]): Promise<Constants> {
  const sources = tensors.flatMap(({ origin }) => origin?.source ?? []);
  const paths = [...new Set(sources.map(({ path }) => path))];
  const texts = await Promise.all(paths.map((path) => readFile(path, "utf8").catch(() => "")));
  const lines = new Map(paths.map((path, i) => [path, (texts[i] ?? "").split("\n")]));
  return new Map(
    sources.flatMap((source): readonly (readonly [string, string])[] => {
      const all = lines.get(source.path) ?? [];
      const statement = all.slice(Math.max(0, source.line - 1 - mostLines), source.line - 1);
      const name = constantBefore([...statement, (all[source.line - 1] ?? "").slice(0, source.column - 1)].join("\n"));
      return name === null ? [] : [[siteText(source), name]];
    }),
  );
}
