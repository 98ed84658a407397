/**
 * JSON documents that users give. A key that an object has twice is an error: JSON.parse takes the last value. So is a
 * document that is nested deeper than any of Braid's, which other readers end at.
 */

/** Throws a SyntaxError. */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  const fault = asDiagnostic(text);
  if (fault !== null) throw new SyntaxError(fault);
  return value;
}

const mostLevels = 100;

/** Of valid JSON. */
function asDiagnostic(text: string): string | null {
  // One entry for each object or list that is open. Lists have no keys.
  const open: Set<string>[] = [];
  for (const [token, string, colon] of text.matchAll(/("[^"\\]*(?:\\.[^"\\]*)*")\s*(:?)|[[\]{}]/gu)) {
    if (token === "{" || token === "[") {
      if (open.push(new Set()) > mostLevels) return `it is nested more than ${mostLevels} deep`;
    } else if (token === "}" || token === "]") open.pop();
    else if (colon === ":" && string !== undefined) {
      const keys = open.at(-1);
      const key: unknown = JSON.parse(string);
      if (typeof key !== "string" || keys === undefined) continue;
      if (keys.has(key)) return `the key ${string.slice(0, 80)} is given twice`;
      keys.add(key);
    }
  }
  return null;
}

/** JSON of a value that a user gave, for a message: at most 80 characters. */
export function jsonText(value: unknown): string {
  try {
    const text: unknown = JSON.stringify(value);
    return String(text).slice(0, 80);
  } catch {
    // The parser of JSON takes any depth, its printer does not.
    return "a value that is nested too deeply to print";
  }
}

/** Every platform that Braid runs on has it, and the compiler is told of none. */
declare const TextDecoder: new (
  encoding: string,
  options: { readonly fatal: boolean; readonly ignoreBOM: boolean },
) => { readonly decode: (bytes: Uint8Array) => string };

/** Throws a URIError for bytes that are no UTF-8. */
export function utf8Text(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new URIError("bytes that are no UTF-8");
  }
}
