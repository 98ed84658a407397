/**
 * Parses nvFuser's Host IR dumps and Braid's own; the inverse of `print`. It understands all eras, from the drafts of
 * early 2025 (`select`, `i83`) to the call-style verbs of 2026, and ignores text around containers. docs/nvfuser.md lists
 * what each era omits and how it is inferred.
 */
import { type Diagnostic, DiagnosticError, fail } from "../../diagnostics/diagnostic.ts";
import type { HostProgram, Statement } from "../nodes.ts";
import { containerTitle, type DumpSource } from "../syntax/text/source.ts";
import { validateHostProgram } from "../validate/validate.ts";
import { parseContainer, type ParsedContainer, type RootMeaning } from "./container.ts";

export type { ParsedContainer, RootMeaning };

export interface ParseOptions {
  /** The name of the text in diagnostics; "dump" if not given. */
  readonly file?: string;
  /**
   * The meaning of a constant root of a communication. "devices": a device id, as dumps print until 2025. "positions":
   * a position in the team. "era" (the default): by the era of the dump.
   */
  readonly roots?: RootMeaning;
}

/**
 * The host program of a text with one container, or of container number `container`, counted from 0. Throws
 * `dump-syntax`, `dump-unsupported`, `dump-incomplete`, `dump-contradiction`, `dump-container`, and
 * `host-program-invalid` if the program breaks a rule, all with the line of the text.
 */
export function parse(text: string, options: ParseOptions & { readonly container?: number } = {}): HostProgram {
  const { container, file = "dump" } = options;
  const sources = requireContainers(text, file);
  const source = sources[container ?? 0];
  if (source === undefined || (container === undefined && sources.length > 1)) {
    return fail({
      code: "dump-container",
      message:
        container === undefined
          ? `the text has ${sources.length} containers`
          : `the text has no container ${container}`,
      place: { kind: "file", path: file },
      found: `container${sources.length === 1 ? "" : "s"} in line ${sources.map(({ firstLine }) => firstLine).join(", ")}`,
      expected: container === undefined ? "one container, or { container }" : `0 to ${sources.length - 1}`,
      help: "choose a container, counted from 0",
    });
  }
  return checked(parseContainer(source, options.roots ?? "era"), file).program;
}

/** All containers of a text in order: one per rank, or one per pass that was printed. Throws the same as `parse`. */
export function parseContainers(text: string, options: ParseOptions = {}): readonly ParsedContainer[] {
  const { file = "dump", roots = "era" } = options;
  return requireContainers(text, file).map((source) => checked(parseContainer(source, roots), file));
}

function requireContainers(text: string, file: string): ReturnType<typeof findContainers> {
  const sources = findContainers(text, file);
  if (sources.length > 0) return sources;
  return fail("dump-container", "the text has no container", {
    place: { kind: "file", path: file },
    ...otherFormat(text),
    expected: "the output of a program that ran with NVFUSER_DUMP=host_ir, or of braid lower",
  });
}

/** What the text is instead, if it is another of nvFuser's prints. */
function otherFormat(text: string): { readonly found: string; readonly help: string } {
  if (/^\s*def \w+\(\s*fd\s*:\s*FusionDefinition/mu.test(text))
    return {
      found: "a FusionDefinition of nvFuser",
      help: "save the definition as a file that ends in .py: docs/import-nvfuser.md",
    };
  if (/%kernel(?:_math)? \{/u.test(text))
    return {
      found: "nvFuser's Fusion IR, which has no host program (%kernel)",
      help: "save it as a file that ends in .fusion: docs/import-nvfuser.md",
    };
  return {
    found: text.trim() === "" ? "no text" : `${text.length} characters without "%HostIrContainer {"`,
    help: "pass the dump from the line that begins with %HostIrContainer",
  };
}

function checked(container: ParsedContainer, file: string): ParsedContainer {
  const findings = validateHostProgram(container.program);
  if (findings.length > 0) throw new DiagnosticError(findings.map((finding) => withLine(finding, container, file)));
  return container;
}

/** The finding at the line of its statement. */
function withLine(finding: Diagnostic, container: ParsedContainer, file: string): Diagnostic {
  const { place, notes = [] } = finding;
  if (place?.kind !== "statement") return finding;
  const statement = findStatement(container, place.text);
  const line = (statement === null ? undefined : container.lines.get(statement)) ?? container.line;
  return { ...finding, place: { kind: "file", path: file, line }, notes: [`in ${place.text}`, ...notes] };
}

/** The statement at the end of a finding's place: `Wait at body[3].then[1]`. */
function findStatement({ program }: ParsedContainer, text: string): Statement | null {
  const [, path] = / at (body\[.*\])$/u.exec(text) ?? [];
  if (path === undefined) return null;
  let scope = program.body;
  let found: Statement | null = null;
  for (const [, name, position] of path.matchAll(/(body|then|else)\[(\d+)\]/gu)) {
    if (found?.kind === "ForLoop") scope = found.body;
    if (found?.kind === "IfThenElse") scope = name === "then" ? found.then : found.else;
    found = scope[Number(position)] ?? null;
  }
  return found;
}

const byteOrderMark = 0xfeff;

/**
 * One source per container, from the line of its title to the next title; everything between is other output. A prefix
 * before the title (a launcher's, or a mail's `> `) is cut off all of its lines. Blanks of an indented copy stay, since
 * they do no harm.
 */
function findContainers(text: string, file: string): readonly DumpSource[] {
  const sources: DumpSource[] = [];
  let line = 1;
  let counted = 0;
  for (let found = text.indexOf(containerTitle); found >= 0;) {
    const next = text.indexOf(containerTitle, found + containerTitle.length);
    const lineStart = text.lastIndexOf("\n", found) + 1;
    // A byte order mark does not count as a character of the first line.
    const start = text.charCodeAt(lineStart) === byteOrderMark ? lineStart + 1 : lineStart;
    const end = next < 0 ? text.length : text.lastIndexOf("\n", next) + 1;
    line += countLines(text, counted, start);
    counted = start;
    if (next >= 0 && end <= found) failSameLine(file, line);
    const prefix = text.slice(start, found);
    sources.push(
      /\S/u.test(prefix)
        ? withoutPrefix(text.slice(start, Math.max(end, start)), prefix, file, line)
        : {
            file,
            text: text.slice(start, Math.max(end, found + containerTitle.length)),
            firstLine: line,
            prefixLength: 0,
            lines: null,
          },
    );
    found = next;
  }
  return sources;
}

function failSameLine(file: string, line: number): never {
  return fail("dump-syntax", "two containers begin on one line", {
    place: { kind: "file", path: file, line },
    found: "a second %HostIrContainer",
    expected: "a line break before it",
    help: "pass the dump as nvFuser or Braid printed it; line breaks are missing",
  });
}

function countLines(text: string, from: number, to: number): number {
  let count = 0;
  for (let end = text.indexOf("\n", from); end >= 0 && end < to; end = text.indexOf("\n", end + 1)) count++;
  return count;
}

/** A line without the prefix is other output, unless it is blank or only the last blanks of its prefix are missing. */
function withoutPrefix(text: string, prefix: string, file: string, firstLine: number): DumpSource {
  const kept: string[] = [];
  const lines: number[] = [];
  const bare = prefix.trimEnd();
  text.split("\n").forEach((line, i) => {
    const own = line.startsWith(prefix) ? line.slice(prefix.length) : line.trimEnd() === bare ? "" : null;
    if (own === null) return;
    kept.push(own);
    lines.push(firstLine + i);
  });
  return { file, text: kept.join("\n"), firstLine, prefixLength: prefix.length, lines };
}
