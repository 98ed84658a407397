/** Indents the lines of a generated source for readers. */

/** Two spaces per open brace; directives at the margin. */
export function indented(lines: readonly string[]): string {
  let depth = 0;
  return lines
    .map((line) => {
      if (line.startsWith("}")) depth--;
      const text = line.startsWith("#") ? line : `${"  ".repeat(depth)}${line}`;
      if (line.endsWith("{")) depth++;
      return text;
    })
    .join("\n");
}
