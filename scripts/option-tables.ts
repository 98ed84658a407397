/**
 * The tables of options in docs/, made from the schema. A line `<!-- options: TABLE -->` in a page stands for one of
 * these tables. The site has all of them, the page only those that neither `--help` nor another page has
 * (`values schedule lowering`, `impl`):
 *
 *     shared GROUP...   options of these groups that lower, run and verify all take
 *     lower|run|verify  the other options of the command
 *     bench|calibrate   all options of the command
 *     compile           those that lower, run and verify do not take
 *     impl              options of `bench --impl braid;...`
 *     values FLAG [GROUP]  what --schedule, --print, --gpu and bench's --set assign
 */
import { benchRows } from "../bench/compare/bench-options.ts";
import { braidOptionNames, braidOptionRow } from "../bench/compare/braid/braid-options.ts";
import { compileRows } from "../src/cli/compile/compile-plan.ts";
import { assigningFlags, flags } from "../src/cli/flags/option-flags.ts";
import {
  type CommandName,
  flagOfRow,
  namesOf,
  type OptionGroup,
  optionGroups,
  type OptionName,
  optionNames,
  type OptionRow,
  optionRow,
  wordOf,
} from "../src/compile/options.ts";
import { isOneOf, keysOf } from "../src/support/invariant.ts";

const block = /(?<marker><!-- options: (?<table>[a-z ]+) -->\n)(?:\n?(?:\|.*\n)+)?/gu;

/** The text with the tables after their markers. */
export function withOptionTables(text: string, reader: "page" | "site"): string {
  return text.replaceAll(block, (_, marker: string, table: string) => {
    const isElsewhere = !/^(?:values schedule lowering|impl)$/u.test(table);
    const written = optionTable(table.split(" "));
    return isElsewhere && reader === "page" ? marker : `${marker}\n${written}\n`;
  });
}

const groups = keysOf(optionGroups);
const programCommands = ["lower", "run", "verify", "explain"] as const;

function isShared(name: OptionName): boolean {
  return programCommands.every((command) => optionRow(name).commands.includes(command));
}

function optionTable([subject = "", ...rest]: readonly string[]): string {
  if (subject === "values") return valuesTable(rest);
  if (subject === "impl") return implementationTable();
  if (subject === "shared") {
    const names = groups.filter((group) => rest.includes(group)).flatMap((group) => ofGroup(group).filter(isShared));
    return flagTable(names.map(schemaRow), null);
  }
  if (isOneOf(programCommands, subject)) {
    return flagTable(
      namesOf(subject)
        .filter((name) => !isShared(name))
        .map(schemaRow),
      subject,
    );
  }
  if (subject === "bench")
    return flagTable([...Object.entries(benchRows), ...namesOf("bench").map(schemaRow)], subject);
  if (subject === "compile") {
    const others = namesOf(subject).filter((name) => !isShared(name));
    return flagTable([...Object.entries(compileRows), ...others.map(schemaRow)], subject);
  }
  if (subject === "calibrate") return flagTable(namesOf("calibrate").map(schemaRow), subject);
  throw new Error(`there is no table of options ${subject}`);
}

type NamedRow = readonly [name: string, row: OptionRow];

function schemaRow(name: OptionName): NamedRow {
  return [name, optionRow(name)];
}

function ofGroup(group: OptionGroup): readonly OptionName[] {
  return optionNames.filter((name) => optionRow(name).group === group);
}

/** The flags of the rows; those that assign several options name the values, which have a table of their own. */
function flagTable(rows: readonly NamedRow[], command: CommandName | null): string {
  const cells = rows
    .filter(([, { within }]) => within === undefined)
    .map(([name, row]) => {
      const { argument, alone } = row.kind;
      const value = argument === null ? "" : alone === undefined ? ` ${argument}` : `[=${argument}]`;
      const short = row.short === undefined ? "" : `-${row.short}, `;
      return [code(`${short}${flagOfRow(name, row)}${value}`), defaultText(row, command), row.help];
    });
  const assigning = [...assigningFlags(rows)].flatMap(([flag, { row, members }]) => {
    if (flag === "schedule") return [];
    const words = [...members.keys()].map(code).join(", ");
    return [[code(`--${flag} ${row.argument}`), "", `${flags[flag].help}: ${words} ([values](#values-of---${flag}))`]];
  });
  return table(["flag", "default", "meaning"], [...cells, ...assigning]);
}

/** What a flag assigns, in all commands. */
function valuesTable([flag = "", group]: readonly string[]): string {
  const others: readonly NamedRow[] = [...Object.entries(compileRows), ...Object.entries(benchRows)];
  const rows = [...optionNames.map(schemaRow), ...others].filter(
    ([, row]) => row.within === flag && (group === undefined || row.group === group),
  );
  const isOfSeveral = new Set(rows.flatMap(([, { commands }]) => commands)).size > 1 && flag === "print";
  const cells = rows.map(([name, row]) => {
    const { argument } = row.kind;
    const word = wordOf(name, row);
    const usage =
      argument === null ? word : row.kind.alone === undefined ? `${word}=${argument}` : `${word}[=${argument}]`;
    const said = argument === null && row.default === true ? "on" : defaultText(row, null);
    return [code(usage), isOfSeveral ? row.commands.map(code).join(", ") : said, row.help];
  });
  return table(["value", isOfSeveral ? "of" : "default", "meaning"], cells);
}

/** Without a default in the help, a switch is off and a list is empty. */
function defaultText(row: OptionRow, command: CommandName | null): string {
  const otherwise = command === null ? undefined : row.otherwiseOf?.[command];
  if (otherwise !== undefined) return otherwise;
  const value = (command === null ? undefined : row.defaultOf?.[command]) ?? row.default;
  if (row.required === true) return "required";
  if (value === undefined) return row.otherwise ?? "";
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

function implementationTable(): string {
  const own = braidOptionNames.filter(
    (name) => !(isOneOf(optionNames, name) && braidOptionRow(name) === optionRow(name)),
  );
  const asFlags = braidOptionNames.filter((name) => !own.includes(name)).map(code);
  return table(
    ["option", "values", "meaning"],
    [
      ...own.map((name) => {
        const { kind, help } = braidOptionRow(name);
        return [code(name), code(kind.argument ?? "true|false"), help];
      }),
      [
        asFlags.join(" "),
        "as of --schedule",
        "the flag, or the value of --schedule, of the same name: `inPlace=true` is `--schedule inPlace`",
      ],
    ],
  );
}

/** A vertical bar ends a cell, even in code. */
export function code(text: string): string {
  return `\`${text.replaceAll("|", String.raw`\|`)}\``;
}

/** The table as prettier prints it. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(3, ...all.map((row) => (row[column] ?? "").length)));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}
