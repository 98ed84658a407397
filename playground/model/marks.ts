/** Where a diagnostic stands in the user's program. */
import type { Diagnostic } from "../../src/diagnostics/diagnostic.ts";
import { nearest } from "../../src/support/wording.ts";

export interface SourcePlace {
  readonly line: number;
  readonly column: number | null;
}

/** The line of the call, of the file's place, or of the first tensor that it mentions; null if there is none. */
export function placeOf({ place, source, tensors = [] }: Diagnostic): SourcePlace | null {
  if (place?.kind === "file" && place.line !== undefined) return { line: place.line, column: place.column ?? null };
  const texts = [source, ...tensors.flatMap((each) => [each.source, each.annotations?.[0]?.source])];
  for (const text of texts) {
    const [, line, column] = /:(\d+):(\d+)$/u.exec(text ?? "") ?? [];
    if (line !== undefined) return { line: Number(line), column: Number(column) };
  }
  return null;
}

/** The rank whose edited host program is refused; null where it is the user's program, or an option. */
export function editedRankOf({ place }: Diagnostic): number | null {
  const [, rank] = /^rank (\d+)$/u.exec(place?.kind === "file" ? place.path : "") ?? [];
  return rank === undefined ? null : Number(rank);
}

/** `line 4: there is no axis rwos`. */
export function headlineOf(diagnostic: Diagnostic): string {
  const { place, message } = diagnostic;
  const line = placeOf(diagnostic)?.line;
  const rank = editedRankOf(diagnostic) === null || place?.kind !== "file" ? "" : `${place.path}, `;
  return line === undefined ? message : `${rank}line ${line}: ${message}`;
}

/** `found`, `expected` and `fix` as lines under the message. */
export function explanationOf({ message, found, expected, help }: Diagnostic): string {
  const lines = [message];
  if (found !== undefined && !message.includes(found)) lines.push(`found: ${found}`);
  if (expected !== undefined) lines.push(`expected: ${expected}`);
  if (help !== undefined) lines.push(`fix: ${help}`);
  return lines.join("\n");
}

/** The edit of the text that a fix such as `did you mean X?` or `write X` describes, or the nearest of the expected names; null if it is no such edit. */
export function editOf(diagnostic: Diagnostic, text: string): { readonly label: string; readonly text: string } | null {
  const { found, help = "", expected = "" } = diagnostic;
  const place = placeOf(diagnostic);
  const [, named] = /^(?:did you mean|write) ([\w$]+)\??$/u.exec(help) ?? [];
  const names = /^[\w$]+(?:, [\w$]+)+$/u.test(expected) ? expected.split(", ") : [];
  const word = named ?? nearest(found ?? "", names);
  if (word === undefined || found === undefined || place === null || !/^[\w$]+$/u.test(found)) return null;
  const lines = text.split("\n");
  const line = lines[place.line - 1];
  if (line === undefined || !line.includes(found)) return null;
  lines[place.line - 1] = line.replace(found, word);
  return { label: `Replace ${found} by ${word}`, text: lines.join("\n") };
}
