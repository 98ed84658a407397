/**
 * docs/ops.md: a line for every exported op, from its docstring and from the tables of gradients. The sections are the
 * files of src/ir/api/ops.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as api from "../src/ir/api/ops.ts";
import { binaryVjps, reductionVjps, unaryVjps } from "../src/ir/gradients/functions.ts";
import { vjps } from "../src/ir/gradients/rules.ts";
import { compositionVjps } from "../src/ir/gradients/compositions.ts";
import { at } from "../src/support/invariant.ts";
import { code } from "./option-tables.ts";

const exported =
  /\/\*\*(?<doc>(?:(?!\*\/)[\s\S])*)\*\/\nexport function (?<name>\w+)(?:<[^(]*>)?\((?<parameters>[^]*?)\n?\): /gu;

export function opsPage(root: string): string {
  const folder = join(root, "src/ir/api/ops");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
  const sections = files.toSorted().flatMap((file) => {
    const text = readFileSync(join(folder, file), "utf8");
    const ops = Array.from(text.matchAll(exported), ({ groups = {} }) => groups).filter(({ name = "" }) => name in api);
    if (ops.length === 0) return [];
    const lines = ops.flatMap(({ name = "", parameters = "", doc = "" }) => {
      const call = code(`${name}(${namesOf(parameters)})`);
      return wrapped(`- ${call}${hasGradient(name) ? "" : " ∅"}: ${firstSentence(doc)}`, "  ");
    });
    return ["", `## ${titleOf(file)}`, "", ...lines];
  });
  return [
    "# Ops",
    "",
    "The functions of the API, by file of `src/ir/api/ops`. Their docstrings have the dtypes, shapes and errors, and",
    "[ir.md](ir.md) has the rules that all share. `npm run docs` writes this page.",
    "",
    "∅ marks ops without a [gradient](gradients.md).",
    ...sections,
    "",
  ].join("\n");
}

/** Wraps prose like prettier, which breaks no code; `indent` begins all lines but the first. */
export function wrapped(text: string, indent = ""): readonly string[] {
  const lines: string[] = [];
  for (const [word] of text.matchAll(/(?:`[^`]*`|\S)+/gu)) {
    const longer = lines.length === 0 ? word : `${lines.at(-1)} ${word}`;
    if (lines.length === 0 || longer.length > 120) lines.push(lines.length === 0 ? word : indent + word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

/** `compositions/norms.ts` as `Norms`. */
function titleOf(file: string): string {
  const name = at(/(?<name>[\w-]+)\.ts$/u.exec(file) ?? [], 1);
  return name.charAt(0).toUpperCase() + name.slice(1).replaceAll("-", " ");
}

/** The names of the parameters; one with a default is optional. */
function namesOf(parameters: string): string {
  let depth = 0;
  const list: string[] = [""];
  for (const character of parameters) {
    if ("([{<".includes(character)) depth++;
    if (")]}>".includes(character)) depth--;
    if (character === "," && depth === 0) list.push("");
    else list[list.length - 1] += character;
  }
  return list
    .map((each) => each.trim())
    .filter((each) => each !== "")
    .map((each) => {
      const name = each.startsWith("{") ? "options" : at(/^(?:\.\.\.)?(?<name>\w+)/u.exec(each) ?? ["", ""], 1);
      return /^\w+\?|=(?!>)/u.test(each) ? `${name}?` : name;
    })
    .join(", ");
}

function firstSentence(doc: string): string {
  const text = doc.replaceAll(/\s*\n\s*\* ?/gu, " ").trim();
  return at(/^(?<sentence>[\s\S]*?)\.(?:\s+(?=[A-Z`\d])|$)/u.exec(text) ?? [text, text], 1);
}

/** By the row with the function's name; a function without one has the gradients of the ops that it calls. */
function hasGradient(name: string): boolean {
  const kind = name.charAt(0).toUpperCase() + name.slice(1);
  const own = (rows: object, key: string): unknown => Object.entries(rows).find(([each]) => each === key)?.[1];
  const rules = [
    own(compositionVjps, name),
    own(unaryVjps, name),
    own(reductionVjps, name),
    own(vjps, kind),
    own(binaryVjps, name),
  ];
  const rule = rules.find((each) => each !== undefined);
  return Array.isArray(rule) ? rule.some((each) => each !== null) : rule !== null;
}
