/**
 * Scans a dump from left to right and never goes back further than the last word, so parsing takes linear time. The
 * first mismatch ends parsing with a diagnostic.
 */
import { failAt } from "./source.ts";
import type { DumpSource } from "./source.ts";

export interface DumpScanner {
  readonly source: DumpSource;
  /** The text of the source. */
  readonly text: string;
  position: number;
}

export function createDumpScanner(source: DumpSource): DumpScanner {
  return { source, text: source.text, position: 0 };
}

const newline = 10;

/** The character code at the position; NaN at the end. */
export function peek({ text, position }: DumpScanner): number {
  return text.charCodeAt(position);
}

/** Skips blanks within the line. */
export function skipBlanks(scanner: DumpScanner): void {
  const { text } = scanner;
  let position = scanner.position;
  while (isBlank(text.charCodeAt(position))) position++;
  scanner.position = position;
}

/** Skips blanks and line breaks. */
export function skipSpace(scanner: DumpScanner): void {
  const { text } = scanner;
  let position = scanner.position;
  for (;;) {
    const code = text.charCodeAt(position);
    if (!isBlank(code) && code !== newline) break;
    position++;
  }
  scanner.position = position;
}

/** Steps over `literal` if it comes next. */
export function take(scanner: DumpScanner, literal: string): boolean {
  if (!scanner.text.startsWith(literal, scanner.position)) return false;
  scanner.position += literal.length;
  return true;
}

/** Steps over blanks, `literal` and blanks. */
export function expect(scanner: DumpScanner, literal: string): void {
  skipBlanks(scanner);
  if (!take(scanner, literal)) failExpected(scanner, quotedLiteral(literal));
  skipBlanks(scanner);
}

/** Steps over blanks, line breaks and `literal`. */
export function expectAcrossLines(scanner: DumpScanner, literal: string): void {
  skipSpace(scanner);
  if (!take(scanner, literal)) failExpected(scanner, quotedLiteral(literal));
}

/** `name=` or `name =`, as eras write it. */
export function expectField(scanner: DumpScanner, name: string): void {
  expect(scanner, name);
  expect(scanner, "=");
}

/** A whole number without a sign. */
export function expectNumber(scanner: DumpScanner, what: string): number {
  const start = scanner.position;
  const { text } = scanner;
  let position = start;
  let value = 0;
  for (;;) {
    const digit = text.charCodeAt(position) - 48;
    if (!(digit >= 0 && digit <= 9)) break;
    value = value * 10 + digit;
    position++;
  }
  if (position === start) failExpected(scanner, what);
  if (!Number.isSafeInteger(value)) failExpected(scanner, `${what} below 2^53`);
  scanner.position = position;
  return value;
}

/** A word of letters, digits, `_` and dots: `deviceIdx.x`, `Set.Permute`. Empty if there is none. */
export function readWord(scanner: DumpScanner): string {
  const { text, position: start } = scanner;
  let position = start;
  while (isWordPart(text.charCodeAt(position))) position++;
  scanner.position = position;
  return text.slice(start, position);
}

/** Steps over blanks to the end of the line. */
export function expectLineEnd(scanner: DumpScanner): void {
  skipBlanks(scanner);
  if (!atLineEnd(scanner)) failExpected(scanner, "the end of the line");
}

export function atLineEnd({ text, position }: DumpScanner): boolean {
  return position >= text.length || text.charCodeAt(position) === newline;
}

export function skipLine(scanner: DumpScanner): void {
  const end = scanner.text.indexOf("\n", scanner.position);
  scanner.position = end < 0 ? scanner.text.length : end + 1;
}

export function failExpected(scanner: DumpScanner, expected: string, position: number = scanner.position): never {
  return failAt(scanner.source, position, "dump-syntax", "the dump cannot be read", {
    expected,
    help: "pass the dump as nvFuser or Braid printed it; a line may be cut off, edited or mixed with other output",
  });
}

export function quotedLiteral(literal: string): string {
  return `"${literal}"`;
}

export function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

/** Includes non-breaking spaces, which copies from web pages have. */
export function isBlank(code: number): boolean {
  return code === 32 || code === 9 || code === 13 || code === 160;
}

/** A letter or `_`. */
export function isWordStart(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || code === 95;
}

function isWordPart(code: number): boolean {
  return isWordStart(code) || isDigit(code) || code === 46;
}
