/** The text of one container with its position in the file, and diagnostics that show the line with a caret. */
import {
  type Diagnostic,
  type DiagnosticDetails,
  fail,
  type GivenDiagnostic,
  asDiagnostic,
} from "../../../diagnostics/diagnostic.ts";

/**
 * Copies of dumps may be indented, and launchers put a prefix before every line (`[1,0]<stdout>:`). `text` has neither
 * the prefix nor lines of other ranks.
 */
export interface DumpSource {
  /** As the user names it. */
  readonly file: string;
  readonly text: string;
  /** The line of the file, from 1, in which `text` starts. */
  readonly firstLine: number;
  readonly prefixLength: number;
  /** For every line of `text` its line in the file, if lines were omitted; otherwise null. */
  readonly lines: readonly number[] | null;
}

/** Without `found`, that is the word or sign at the position. */
type DumpDetails = Omit<DiagnosticDetails, "place" | "excerpt"> & Required<Pick<Diagnostic, "expected" | "help">>;

/** Lines of dumps have hundreds of characters; this many are shown on each side. */
const reach = 48;

export function failAt(source: DumpSource, position: number, ...given: GivenDiagnostic<DumpDetails>): never {
  const fault = asDiagnostic(given);
  const { line, column, lineText, offset } = sourcePlaceAt(source, position);
  const from = Math.max(0, offset - reach);
  const to = Math.min(lineText.length, offset + reach);
  const before = from > 0 ? "..." : "";
  const after = to < lineText.length ? "..." : "";
  return fail({
    ...fault,
    found: fault.found ?? foundText(source.text, position),
    place: { kind: "file", path: source.file, line, column },
    excerpt: {
      text: `${before}${lineText.slice(from, to)}${after}`.replaceAll(/\p{Cc}/gu, " "),
      caret: before.length + offset - from,
    },
  });
}

interface SourcePlace {
  /** Line and column in the file, from 1. */
  readonly line: number;
  readonly column: number;
  /** The line's text, without prefix and line end. */
  readonly lineText: string;
  /** The place in `lineText`, from 0. */
  readonly offset: number;
}

export function sourcePlaceAt({ text, firstLine, prefixLength, lines }: DumpSource, position: number): SourcePlace {
  let index = 0;
  let start = 0;
  for (let end = text.indexOf("\n"); end >= 0 && end < position; end = text.indexOf("\n", start)) {
    index++;
    start = end + 1;
  }
  const end = text.indexOf("\n", start);
  const lineText = text.slice(start, end < 0 ? text.length : end).replace(/\r$/u, "");
  const offset = Math.min(position - start, lineText.length);
  return { line: lines?.[index] ?? firstLine + index, column: offset + prefixLength + 1, lineText, offset };
}

function foundText(text: string, position: number): string {
  if (position >= text.length) return "the end of the text";
  const [line = ""] = text.slice(position, position + 40).split(/\r?\n/u, 1);
  if (line.trim() === "") return "the end of the line";
  const [word = ""] = /^(?:[\w.]+|\s*\S)/u.exec(line) ?? [];
  return `"${word.trim()}"`;
}

// The lines around the statements of a dump.

export const containerTitle = "%HostIrContainer {";
export const containerEnd = "} // %HostIrContainer";

export const kernelTitle = "%kernel {";
export const kernelEnd = "} // %kernel";

/** After the container: definitions of its names and axes. */
export const definitionsTitle = "Index definitions:";
export const transformsTitle = "TransformPrinter :";
