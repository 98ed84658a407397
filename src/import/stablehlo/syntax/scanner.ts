/**
 * Scans MLIR text from left to right, each character once. The first mismatch ends reading with a diagnostic that shows
 * the line.
 */
import type { DumpSource } from "../../../host/syntax/text/source.ts";
import { failAt } from "../../../host/syntax/text/source.ts";

export interface MlirScanner {
  readonly source: DumpSource;
  readonly text: string;
  position: number;
  /** How many groups and regions are open. */
  depth: number;
}

/** Deeper text is no program. Reading recurses once per level. */
const mostDepth = 128;

export function createMlirScanner(file: string, text: string, position = 0): MlirScanner {
  return { source: { file, text, firstLine: 1, prefixLength: 0, lines: null }, text, position, depth: 0 };
}

/** The code of the next character after blanks and comments; NaN at the end. */
export function peekMlir(scanner: MlirScanner): number {
  const { text } = scanner;
  let { position } = scanner;
  for (;;) {
    const code = text.charCodeAt(position);
    if (code === 32 || code === 10 || code === 13 || code === 9) position++;
    else if (code === 47 && text.charCodeAt(position + 1) === 47) {
      const end = text.indexOf("\n", position);
      position = end < 0 ? text.length : end;
    } else {
      scanner.position = position;
      return code;
    }
  }
}

export function isNext(scanner: MlirScanner, literal: string): boolean {
  peekMlir(scanner);
  return scanner.text.startsWith(literal, scanner.position);
}

/** Steps over `literal` if it comes next. */
export function takeMlir(scanner: MlirScanner, literal: string): boolean {
  if (!isNext(scanner, literal)) return false;
  scanner.position += literal.length;
  return true;
}

export function expectMlir(scanner: MlirScanner, literal: string): void {
  if (!takeMlir(scanner, literal)) failExpectedMlir(scanner, `"${literal}"`);
}

const forms = {
  /** A word with dots, such as the name of an op. */
  word: /[A-Za-z_][\w$]*(?:\.[\w$]+)*/y,
  number: /-?(?:0x[\dA-Fa-f]+|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)/y,
  value: /%(?:\d+|[A-Za-z_$.-][\w$.-]*)(?:#\d+)?/y,
  symbol: /@(?:[A-Za-z_][\w$.]*|"(?:[^"\\\n]|\\.)*")/y,
  alias: /[#!^][A-Za-z_\d$][\w$.-]*/y,
} as const;

/** The text of this form if it comes next; empty otherwise. */
export function takeForm(scanner: MlirScanner, form: keyof typeof forms): string {
  peekMlir(scanner);
  const pattern = forms[form];
  pattern.lastIndex = scanner.position;
  const found = pattern.exec(scanner.text)?.[0] ?? "";
  scanner.position += found.length;
  return found;
}

/** A string in quotes, if one comes next. Those of constants may have many megabytes, too many for a pattern. */
export function takeString(scanner: MlirScanner): string {
  if (peekMlir(scanner) !== quote) return "";
  const { text, position } = scanner;
  for (let end = position + 1; end < text.length; end++) {
    const code = text.charCodeAt(end);
    if (code === newline) return "";
    if (code === backslash) end++;
    if (code !== quote) continue;
    scanner.position = end + 1;
    return text.slice(position, end + 1);
  }
  return "";
}

const [quote, backslash, newline] = [34, 92, 10];

export function expectString(scanner: MlirScanner): string {
  return takeString(scanner) || failExpectedMlir(scanner, "the end of the string");
}

export function expectForm(scanner: MlirScanner, form: keyof typeof forms, what: string): string {
  const found = takeForm(scanner, form);
  return found === "" ? failExpectedMlir(scanner, what) : found;
}

/** The next word, which is not stepped over. */
export function peekWord(scanner: MlirScanner): string {
  const { position } = scanner;
  const word = takeForm(scanner, "word");
  scanner.position = position;
  return word;
}

/** The characters of a string or a symbol, without quotes. */
export function unquoted(text: string): string {
  const [start, end] = text.endsWith('"') ? [text.indexOf('"') + 1, text.length - 1] : [text.startsWith("@") ? 1 : 0];
  return text
    .slice(start, end)
    .replaceAll(/\\(?:([\dA-Fa-f]{2})|(.))/gu, (_, code: string | undefined, sign: string) =>
      code === undefined
        ? sign === "n"
          ? "\n"
          : sign === "t"
            ? "\t"
            : sign
        : String.fromCharCode(Number.parseInt(code, 16)),
    );
}

/** Steps over a group that needs no reading, such as a location: from its `(` or `<` to the matching end. */
export function skipGroup(scanner: MlirScanner, open: string, close: string): void {
  const start = scanner.position;
  expectMlir(scanner, open);
  for (let depth = 1; depth > 0;) {
    const code = peekMlir(scanner);
    if (Number.isNaN(code)) failExpectedMlir(scanner, `"${close}" for the "${open}"`, start);
    if (code === quote) {
      expectString(scanner);
      continue;
    }
    if (scanner.text.startsWith("->", scanner.position)) scanner.position++;
    else if (scanner.text.startsWith(open, scanner.position)) depth++;
    else if (scanner.text.startsWith(close, scanner.position)) depth--;
    scanner.position++;
  }
}

/** The result of `read`, one level deeper. */
export function nested<T>(scanner: MlirScanner, read: () => T): T {
  scanner.depth++;
  if (scanner.depth > mostDepth) {
    failAt(scanner.source, scanner.position, "model-syntax", "the file cannot be read", {
      found: `${scanner.depth} groups and regions inside one another`,
      expected: `at most ${mostDepth}`,
      help: "pass the text as the framework printed it",
    });
  }
  const result = read();
  scanner.depth--;
  return result;
}

export function failExpectedMlir(scanner: MlirScanner, expected: string, position?: number): never {
  peekMlir(scanner);
  return failAt(scanner.source, position ?? scanner.position, "model-syntax", "the file cannot be read", {
    expected,
    help: "pass the text as the framework printed it; the file may be cut off or edited",
  });
}
