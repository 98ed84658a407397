/** Tables of docs/patterns.md. */
import { readFileSync } from "node:fs";
import path from "node:path";

/** The cells of the table with a column of that name. */
export function rowsOfPage(column: string): readonly (readonly string[])[] {
  const page = readFileSync(path.resolve(import.meta.dirname, "../../docs/patterns.md"), "utf8");
  const table = page.split("\n\n").find((part) => part.startsWith("|") && part.split("\n")[0]?.includes(` ${column} `));
  if (table === undefined) throw new Error(`no table has a column ${column}`);
  const cells = (line: string): readonly string[] =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim());
  return table.trim().split("\n").slice(2).map(cells);
}
