/** What is wrong with a dump, as a Diagnostic with line, column and the line itself with a caret. */
import { type Diagnostic, fail } from "../../diagnostics/diagnostic.ts";
import { placeOf, type Source } from "./source.ts";

export type DumpFault = Omit<Diagnostic, "place" | "excerpt" | "found" | "expected" | "help"> &
  Required<Pick<Diagnostic, "expected" | "help">> & {
    /** What stands at the place, if not given. */
    readonly found?: string;
  };

/** Lines of dumps have hundreds of characters; this many are shown on each side. */
const reach = 48;

export function failAt(source: Source, position: number, fault: DumpFault): never {
  const { line, column, lineText, offset } = placeOf(source, position);
  const from = Math.max(0, offset - reach);
  const to = Math.min(lineText.length, offset + reach);
  const before = from > 0 ? "..." : "";
  const after = to < lineText.length ? "..." : "";
  return fail({
    ...fault,
    found: fault.found ?? foundText(source.text, position),
    place: { kind: "file", path: source.file, line, column },
    excerpt: {
      text: `${before}${lineText.slice(from, to)}${after}`.replaceAll("\t", " "),
      caret: before.length + offset - from,
    },
  });
}

/** The word or sign at a position. */
function foundText(text: string, position: number): string {
  if (position >= text.length) return "the end of the text";
  const [line = ""] = text.slice(position, position + 40).split(/\r?\n/u, 1);
  if (line.trim() === "") return "the end of the line";
  const [word = ""] = /^(?:[\w.]+|\s*\S)/u.exec(line) ?? [];
  return `"${word.trim()}"`;
}
