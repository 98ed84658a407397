/** The tables of ops that docs/import*.md have on the site, for `<!-- import: FORMAT -->`, made of the rows that read them. */
import { opNames } from "../src/import/fusion-definition/ops.ts";
import { opGroups } from "../src/import/stablehlo/evaluate-body.ts";
import { readOps } from "../src/import/torch-export/build.ts";
import { code, table } from "./option-tables.ts";

const block = /(?<marker><!-- import: (?<format>[a-z-]+) -->\n)(?:\n?(?:\|.*\n)+)?/gu;

const tables: Readonly<Record<string, () => string>> = {
  stablehlo: opTable,
  "torch-export": torchTable,
  "fusion-definition": definitionTable,
};

export function withImportTable(text: string): string {
  return text.replaceAll(block, (_, marker: string, format: string) => `${marker}\n${tables[format]?.() ?? ""}\n`);
}

function definitionTable(): string {
  return table(["ops of `fd.ops`"], [[opNames.map(code).join(", ")]]);
}

/** Overloads of an op are one. */
function torchTable(): string {
  const rows = Object.entries(readOps).map(([group, names]) => {
    const ops = new Set(names.map((name) => name.replace(/^torch\.ops\.(?:aten\.)?([\w.]+)\.\w+$/u, "$1")));
    return [group, [...ops].toSorted().map(code).join(", ")];
  });
  return table(["ops", "without `torch.ops.` and `aten.`, of any overload that a row has"], rows);
}

function opTable(): string {
  const rows = Object.entries(opGroups).map(([group, ops]) => [
    group,
    withNotes(Object.entries(ops).map(([name, { note }]) => [code(shortName(name)), note])),
  ]);
  return table(["ops", "without `stablehlo.`"], rows);
}

/** A note stands once, after the last of the ops beside each other that have it. */
function withNotes(ops: readonly (readonly [name: string, note: string | undefined])[]): string {
  return ops
    .map(([name, note], i) => (note === undefined || note === ops[i + 1]?.[1] ? name : `${name} (${note})`))
    .join(", ");
}

function shortName(name: string): string {
  return name.replace(/^stablehlo\./u, "");
}
