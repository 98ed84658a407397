/** The table of ops in docs/import.md, made of the rows that read them, after `<!-- import: stablehlo -->`. */
import { opGroups } from "../src/import/stablehlo/ops/rows.ts";
import { code, table } from "./option-tables.ts";

const block = /(?<marker><!-- import: stablehlo -->\n)(?:\n?(?:\|.*\n)+)?/u;

export function withImportTable(text: string): string {
  return text.replace(block, (_, marker: string) => `${marker}\n${opTable()}\n`);
}

function opTable(): string {
  const rows = Object.entries(opGroups).map(([group, ops]) => [
    group,
    Object.entries(ops)
      .map(([name, { note }]) => `${code(shortName(name))}${note === undefined ? "" : ` (${note})`}`)
      .join(", "),
  ]);
  return table(["ops", "without `stablehlo.`"], rows);
}

function shortName(name: string): string {
  return name.replace(/^stablehlo\./u, "");
}
