/**
 * A Diagnostic describes a user's mistake: what is wrong, where, what was found, what was expected, and how to fix it.
 * Library calls throw a DiagnosticError; the command line prints it and exits with status 2. codes.ts registers the
 * codes and their titles.
 */
import { runningLine } from "../support/call-site.ts";
import { escapeLine } from "../support/wording.ts";
import type { DiagnosticCode } from "./codes.ts";

/** An API call, a tensor, an axis or an op of a Fusion, a statement of a host program, an option, or a file. */
export type Place =
  | { readonly kind: "call"; readonly text: string }
  | { readonly kind: "tensor"; readonly text: string }
  | { readonly kind: "statement"; readonly text: string }
  | { readonly kind: "command"; readonly rank: number; readonly stream: number; readonly text: string }
  | { readonly kind: "option"; readonly text: string }
  | { readonly kind: "file"; readonly path: string; readonly line?: number; readonly column?: number };

/** A mistake, a doubt or a note. The code is stable; texts may change between versions. */
export interface Diagnostic {
  readonly code: DiagnosticCode;
  /**
   * `error` by default. A `warning` reports what may be wrong, which cannot be known, a `note` something correct that
   * could be better.
   */
  readonly severity?: "error" | "warning" | "note";
  /** One sentence, no trailing period. */
  readonly message: string;
  readonly place?: Place;
  /** The line of the program that made the call that `place` names: `mlp.ts:12:15`. */
  readonly source?: string;
  /** The line of the file that `place` names. `caret` is the character in it, from 0, to mark. */
  readonly excerpt?: { readonly text: string; readonly caret: number };
  readonly found?: string;
  readonly expected?: string;
  /** The fix, as an instruction. */
  readonly help?: string;
  readonly notes?: readonly string[];
  /** The tensors that the texts mention by number: the first, and those that have names. */
  readonly tensors?: readonly MentionedTensor[];
}

/** A tensor as the user named and made it. */
export interface MentionedTensor {
  /** `T3`. */
  readonly tensor: string;
  /** `hidden`, or `chunk of hidden` for a tensor that lowering made from it. */
  readonly name?: string;
  /** The line of the program that made it: `mlp.ts:12:15`. */
  readonly source?: string;
  /** The calls that placed it, such as `axis(0).parallelize("Stream")`, and their lines. Only for errors of lowering. */
  readonly annotations?: readonly { readonly call: string; readonly source: string }[];
}

/** Thrown by library calls: one or more diagnostics. Its message is their rendered text. */
export class DiagnosticError extends Error {
  override readonly name = "DiagnosticError";
  readonly diagnostics: readonly Diagnostic[];
  constructor(diagnostics: readonly Diagnostic[]) {
    super(diagnostics.map(renderDiagnostic).join("\n"));
    this.diagnostics = diagnostics;
  }
}

/** What is said beside the code and the message. */
export type DiagnosticDetails = Omit<Diagnostic, "code" | "message">;

/** Arguments that say a diagnostic: one object, or the code, the message and the rest. */
export type GivenDiagnostic<Details = DiagnosticDetails> =
  | readonly [diagnostic: Pick<Diagnostic, "code" | "message"> & Details]
  | readonly [code: DiagnosticCode, message: string, details: Details];

export function asDiagnostic<Details>(fault: GivenDiagnostic<Details>): Pick<Diagnostic, "code" | "message"> & Details {
  return fault.length === 1 ? fault[0] : { code: fault[0], message: fault[1], ...fault[2] };
}

export function fail(...fault: GivenDiagnostic): never {
  const diagnostic = asDiagnostic(fault);
  const isCall = diagnostic.place?.kind === "call" && diagnostic.source === undefined;
  const source = isCall ? runningLine() : null;
  throw new DiagnosticError([source === null ? diagnostic : { ...diagnostic, source }]);
}

function renderPlace(place: Place): string {
  switch (place.kind) {
    case "call":
    case "tensor":
    case "statement":
    case "option":
      return place.text;
    case "command":
      return `rank ${place.rank}, stream ${place.stream}: ${place.text}`;
    case "file":
      return [place.path, place.line, place.column].filter((part) => part !== undefined).join(":");
  }
}

/** Teams and meshes of many ranks by the first and last ones: a statement may name thousands. */
function withShortTeams(text: string): string {
  return text.replaceAll(/\b(\d+ \d+) \d+(?: \d+){29,}( \d+)\b/gu, "$1 ..$2");
}

function mentionText({ tensor, name, source, annotations = [] }: MentionedTensor): string {
  const named = name === undefined ? "" : ` ${name}`;
  const from = source === undefined ? "" : ` from ${source}`;
  const placed = annotations.map((each) => `; ${each.call} at ${each.source}`).join("");
  return `${tensor} is${named}${name !== undefined && source !== undefined ? "," : ""}${from}${placed}`;
}

/** The diagnostic with names of tensors for their numbers, unless its place is in a host program, whose dump has numbers. */
function withNames(diagnostic: Diagnostic): Diagnostic {
  const { place, tensors = [] } = diagnostic;
  if (place?.kind === "statement" || place?.kind === "command") return diagnostic;
  const names = new Map(tensors.flatMap(({ tensor, name }) => (name === undefined ? [] : [[tensor, name] as const])));
  if (names.size === 0 || new Set(names.values()).size < names.size) return diagnostic;
  const named = (text: string): string => text.replaceAll(/\bT\d+\b/gu, (number) => names.get(number) ?? number);
  const { message, found, expected, help, notes } = diagnostic;
  return {
    ...diagnostic,
    message: named(message),
    ...(place !== undefined && "text" in place ? { place: { ...place, text: named(place.text) } } : {}),
    ...(found === undefined ? {} : { found: named(found) }),
    ...(expected === undefined ? {} : { expected: named(expected) }),
    ...(help === undefined ? {} : { help: named(help) }),
    ...(notes === undefined ? {} : { notes: notes.map(named) }),
  };
}

/**
 * Plain text of several lines: message and code, then place, found, expected, fix and notes. Each is on one line: what a
 * user's names hold cannot look like another message.
 */
export function renderDiagnostic(given: Diagnostic): string {
  const diagnostic = withNames(given);
  const lines = [`${diagnostic.severity ?? "error"}[${diagnostic.code}]: ${diagnostic.message}`];
  if (diagnostic.place) lines.push(`  at: ${withShortTeams(renderPlace(diagnostic.place))}`);
  if (diagnostic.source !== undefined) lines.push(`  where: ${diagnostic.source}`);
  for (const each of diagnostic.tensors ?? []) lines.push(`  where: ${mentionText(each)}`);
  if (diagnostic.excerpt) lines.push(`    ${diagnostic.excerpt.text}`, `    ${" ".repeat(diagnostic.excerpt.caret)}^`);
  if (diagnostic.found !== undefined) lines.push(`  found: ${diagnostic.found}`);
  if (diagnostic.expected !== undefined) lines.push(`  expected: ${diagnostic.expected}`);
  if (diagnostic.help !== undefined) lines.push(`  fix: ${diagnostic.help}`);
  for (const note of diagnostic.notes ?? []) lines.push(`  note: ${note}`);
  return lines.map(escapeLine).join("\n");
}
