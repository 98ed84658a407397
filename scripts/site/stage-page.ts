/**
 * A page of the repository as the site has it: named by its heading, grouped as the table of docs/README.md groups it,
 * with links into the playground after whole programs and dumps, with the text of fixtures, with tables of options and of
 * what importers read, and without links to folders, which a site does not have.
 */
import path from "node:path";
import { stateOf } from "../../playground/model/inputs.ts";
import { encodeState } from "../../playground/model/share.ts";
import type { Document } from "../../playground/model/state.ts";
import { withImportTable } from "../import-table.ts";
import { withOptionTables } from "../option-tables.ts";

/** Stands for the playground's address until the place of the built page is known. */
export const playgroundMark = "https://playground.invalid/";

export interface SiteContext {
  /** Of the table of docs/README.md by page: `docs/gpu.md`. */
  readonly groups: ReadonlyMap<string, string>;
  /** `transformer/mlp` */
  readonly examples: ReadonlySet<string>;
  readonly isFolder: (file: string) => boolean;
  readonly read: (file: string) => string;
}

export interface StagedPage {
  readonly text: string;
  /** Files that the page links to, from the root of the repository. */
  readonly linked: readonly string[];
}

/** A paragraph that is a link to a fixture. */
const shown = /(?<=\n\n)\[(?<words>[^\][]*)\]\((?<to>[^)#\s]*\/test\/fixtures\/[^)#\s]*\.txt)\)(?=\n(?:\n|$))/gu;
const fence = /^(?<indent> *)```(?<language>\w*)\n(?<code>[\s\S]*?)^\k<indent>```$/gmu;
const link = /(?<image>!?)\[(?<words>[^\][]*)\]\((?!https?:)(?<to>[^)#\s]*)(?<heading>#[^)\s]*)?\)/gu;

export function stagePage(page: string, text: string, context: SiteContext): StagedPage {
  const source = withImportTable(withOptionTables(withFixtures(page, text, context), "site"));
  const linked: string[] = [];
  const pieces: string[] = [];
  let end = 0;
  for (const match of source.matchAll(fence)) {
    pieces.push(prose(source.slice(end, match.index), page, context, linked), match[0]);
    const { language = "", code = "" } = match.groups ?? {};
    const opened = documentOf(page, language, code);
    if (opened !== null) pieces.push(`\n\n[Open in the playground](${playgroundMark}#${encodeState(stateOf(opened))})`);
    end = match.index + match[0].length;
  }
  pieces.push(prose(source.slice(end), page, context, linked));
  const staged = pieces.join("");
  // The site's first page has the project's name above it.
  return {
    text: page === "README.md" ? staged.replace(/^# .*$/mu, "") : frontmatter(page, source, context) + staged,
    linked,
  };
}

/** Pages link to fixtures; the site shows them. */
function withFixtures(page: string, text: string, { read }: SiteContext): string {
  return text.replaceAll(shown, (_, words: string, to: string) => {
    const file = path.posix.join(path.posix.dirname(page), to);
    return `${words}:\n\n\`\`\`text\n${read(file).trimEnd()}\n\`\`\``;
  });
}

/**
 * A program or one whole host program; null for a part of one, and for any other text. Pages of passes show what is
 * between passes.
 */
function documentOf(page: string, language: string, code: string): Document | null {
  const name = path.basename(page, ".md").toLowerCase();
  if (/^ *\/\/ \.\.\.$/mu.test(code)) return null;
  if (language === "ts" && /^export default program\(/mu.test(code))
    return { kind: "program", name: `${name}.ts`, text: code };
  if (page.startsWith("docs/passes/")) return null;
  const containers = code.match(/^ *%HostIrContainer \{/gmu)?.length ?? 0;
  const isWhole = containers === 1 && /^ *\} \/\/ %HostIrContainer$/mu.test(code) && !code.includes("...");
  return isWhole ? { kind: "dump", name: `${name}.hir`, text: code } : null;
}

function prose(text: string, page: string, { examples, isFolder }: SiteContext, linked: string[]): string {
  return plainHeadings(text).replaceAll(link, (_, image: string, words: string, to: string, given?: string) => {
    // TypeDoc's names of headings have no two hyphens in a row.
    const heading = (given ?? "").replaceAll(/-{2,}/gu, "-");
    if (to === "") return `${image}[${words}](${heading})`;
    const target = path.posix.normalize(path.posix.join(path.posix.dirname(page), to)).replace(/\/$/u, "");
    const [, example = ""] = /^examples\/(.*)\.ts$/u.exec(target) ?? [];
    if (examples.has(example)) return `[${words}](${playgroundMark}#example=${example})`;
    if (isFolder(target)) return words;
    linked.push(target);
    return `${image}[${words}](${to}${heading})`;
  });
}

/** TypeDoc leaves code out of the names by which links find headings. */
function plainHeadings(text: string): string {
  return text.replaceAll(/^#+ .*$/gmu, (line) =>
    line.replaceAll(/`([^`]*)`/gu, (_, code: string) => code.replaceAll(/[<>_*]/gu, "\\$&")),
  );
}

function frontmatter(page: string, source: string, { groups }: SiteContext): string {
  const [, title = path.basename(page, ".md")] = /^# (.*)$/mu.exec(source) ?? [];
  const group = groups.get(page) ?? groups.get(path.posix.join(path.posix.dirname(page), "README.md")) ?? "More";
  const fields = { title: title.replaceAll("`", ""), group, page: placeOf(page) };
  return `---\n${Object.entries(fields)
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}\n`)
    .join("")}---\n\n`;
}

/** `docs/passes/routes.md` is `passes/routes` of the site's documents. The site's index is the README. */
function placeOf(page: string): string {
  if (page === "docs/README.md") return "contents";
  return page
    .replace(/^docs\//u, "")
    .replace(/\.md$/u, "")
    .replace(/(?<=^|\/)README$/u, "index")
    .toLowerCase();
}

/** Of the table "you want to … | read …" of docs/README.md: the first row that names a page. */
export function groupsOf(contents: string): ReadonlyMap<string, string> {
  const groups = new Map<string, string>();
  for (const [, words = "", cell = ""] of contents.matchAll(/^\| ([a-z][^|]*?) *\| (.*\.md\).*?) *\|$/gmu)) {
    const name = words.charAt(0).toUpperCase() + words.slice(1);
    for (const [, to = ""] of cell.matchAll(/\]\(([^)#]*)/gu)) {
      const page = path.posix.join("docs", to);
      if (!groups.has(page)) groups.set(page, name);
    }
  }
  return groups;
}
