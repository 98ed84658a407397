/** The constants that hold a program's tensors, from the lines of the user's files. */
import { readFile } from "node:fs/promises";
import type { Tensor } from "../../ir/domain.ts";
import type { Constants } from "../../ir/tensor-names.ts";
import { siteText } from "../../support/call-site.ts";

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

// The constant that a program gives the result of a call: `hidden` for the call in `const hidden = linear(x, w)`, also
// in a list, `const [x, w] = [f.input([8]), f.input([8])]`, as a later one, `const x = f.input([8]), w = f.input([8])`,
// and as the one field that is taken, `const { output } = sdpa(q, k, v)`.

const identifier = String.raw`[\p{ID_Start}$_][\p{ID_Continue}$]*`;
const type = String.raw`(?::[^=]*)?`;
const callee = String.raw`(?:[\w$]+\.)*[\w$]*`;
const held = new RegExp(
  String.raw`^\s*(?:(${identifier})|\{\s*(?:\w+\s*:\s*)?(${identifier})\s*\})\s*${type}=\s*${callee}$`,
  "u",
);
const called = new RegExp(String.raw`^\s*${callee}$`, "u");
const named = new RegExp(`^${identifier}$`, "u");

/**
 * `before`: the text up to the called name, or to the bracket after it. Null for calls inside of others, and for
 * variables that may change.
 */
export function constantBefore(before: string): string | null {
  const start = before.lastIndexOf("const ");
  if (start < 0) return null;
  const text = before.slice(start + "const ".length);
  const [, names, values] = /^\s*\[([^\]]*)\]\s*(?::[^=]*)?=\s*\[([^]*)$/u.exec(text) ?? [];
  const entries = topLevelEntries(values ?? text);
  const last = entries?.at(-1) ?? "";
  if (values === undefined) {
    const [, single, field] = held.exec(last) ?? [];
    return single ?? field ?? null;
  }
  const name = names?.split(",")[(entries?.length ?? 0) - 1]?.trim() ?? "";
  return called.test(last) && named.test(name) ? name : null;
}

/** What commas outside of brackets separate; null if a bracket closes that the text does not open, or stays open. */
function topLevelEntries(text: string): readonly string[] | null {
  const entries = [""];
  let depth = 0;
  for (const character of text) {
    if ("([{".includes(character)) depth++;
    else if (")]}".includes(character)) depth--;
    if (depth < 0 || (depth === 0 && character === ";")) return null;
    if (character === "," && depth === 0) entries.push("");
    else entries.push(`${entries.pop() ?? ""}${character}`);
  }
  return depth === 0 ? entries : null;
}
