/**
 * JSON documents that users give. A key that an object has twice is an error: JSON.parse takes the last value. So is a
 * document that is nested deeper than any of Braid's, which other readers end at.
 */

/** Throws a SyntaxError. */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  const fault = faultOf(text);
  if (fault !== null) throw new SyntaxError(fault);
  return value;
}

const mostLevels = 100;

/** Of valid JSON. */
function faultOf(text: string): string | null {
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
