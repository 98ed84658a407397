/**
 * Reads nvFuser's Host IR dumps and Braid's own; the inverse of `print`. It understands all eras, from the drafts of
 * early 2025 (`select`, `i83`) to the call-style verbs of 2026, and ignores text around containers. docs/dumps.md lists
 * what each era leaves out and how it is filled in.
 */
import { DiagnosticError, type Diagnostic, fail } from "../../diagnostics/diagnostic.ts";
import type { HostProgram, Statement } from "../nodes.ts";
import { validateHostProgram } from "../validate/validate.ts";
import { findContainers } from "./find-containers.ts";
import { parseContainer, type ParsedContainer, type RootMeaning } from "./container.ts";

export type { ParsedContainer, RootMeaning };

export interface ParseOptions {
  /** The name of the text in diagnostics; "dump" if not given. */
  readonly file?: string;
  /**
   * What a constant root of a communication is. "devices": a device id, as dumps print until 2025. "positions": a
   * position in the team. "era", the default: by the era of the dump.
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
  return fail({
    code: "dump-container",
    message: "the text has no container",
    place: { kind: "file", path: file },
    found: text.trim() === "" ? "no text" : `${text.length} characters without "%HostIrContainer {"`,
    expected: "the output of a program that ran with NVFUSER_DUMP=host_ir, or of braid lower",
    help: "pass the dump from the line that begins with %HostIrContainer",
  });
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
