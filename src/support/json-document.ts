/** JSON documents that users give. A key that an object has twice is an error: JSON.parse takes the last value. */

/** Throws a SyntaxError. */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  const repeated = repeatedKey(text);
  if (repeated !== null) throw new SyntaxError(`the key ${repeated} is given twice`);
  return value;
}

/** Of valid JSON. As JSON text; null if each object has its keys once. */
function repeatedKey(text: string): string | null {
  // One entry for each object or list that is open. Lists have no keys.
  const open: Set<string>[] = [];
  for (const [token, string, colon] of text.matchAll(/("[^"\\]*(?:\\.[^"\\]*)*")\s*(:?)|[[\]{}]/gu)) {
    if (token === "{" || token === "[") open.push(new Set());
    else if (token === "}" || token === "]") open.pop();
    else if (colon === ":" && string !== undefined) {
      const keys = open.at(-1);
      const key: unknown = JSON.parse(string);
      if (typeof key !== "string" || keys === undefined) continue;
      if (keys.has(key)) return string.slice(0, 80);
      keys.add(key);
    }
  }
  return null;
}
