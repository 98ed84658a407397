/**
 * The constant that a line of a program gives the result of a call: `hidden` for the call in `const hidden = linear(x, w)`,
 * also in a list, `const [x, w] = [f.input([8]), f.input([8])]`.
 */

/** `column` is that of the called name, or of the bracket after it, from 1. Null for calls inside of others, and for variables that may change. */
export function constantAt(line: string, column: number): string | null {
  const before = line.slice(0, column - 1);
  const [, single] =
    /\bconst\s+([\p{ID_Start}$_][\p{ID_Continue}$]*)\s*(?::[^=]*)?=\s*(?:[\w$]+\.)*[\w$]*$/u.exec(before) ?? [];
  if (single !== undefined) return single;
  const [, names, values] = /\bconst\s+\[([^\]]*)\]\s*(?::[^=]*)?=\s*\[(.*)$/u.exec(before) ?? [];
  if (names === undefined || values === undefined) return null;
  const entries = topLevelEntries(values);
  if (entries === null || !/^\s*(?:[\w$]+\.)*[\w$]*$/u.test(entries.at(-1) ?? "")) return null;
  const name = names.split(",")[entries.length - 1]?.trim();
  return name !== undefined && /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name) ? name : null;
}

/** What commas outside of brackets separate; null if a bracket closes that the text does not open, or stays open. */
function topLevelEntries(text: string): readonly string[] | null {
  const entries = [""];
  let depth = 0;
  for (const character of text) {
    if ("([{".includes(character)) depth++;
    else if (")]}".includes(character)) depth--;
    if (depth < 0) return null;
    if (character === "," && depth === 0) entries.push("");
    else entries.push(`${entries.pop() ?? ""}${character}`);
  }
  return depth === 0 ? entries : null;
}
