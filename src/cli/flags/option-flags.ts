/** Makes flags from the schema of options: their parsing and their help. */
import { Command, Option } from "commander";
import type { KindInfo, OptionKind } from "../../compile/options/kind.ts";
import {
  type CommandName,
  flagOfRow,
  type GivenOptions,
  type OptionName,
  type OptionRow,
  namesOf,
  optionGroups,
  rowOf,
} from "../../compile/options.ts";
import { requireOptions } from "../../compile/options/resolve.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { keysOf } from "../../support/keys-of.ts";

/** A command on a program file or a dump, with its flags. `argument`: `[file]` if it can do without. */
export function programCommand(name: CommandName, argument = "<file>"): Command {
  return addFlags(new Command(name).argument(argument, fileArgument), name);
}

export const fileArgument = "program file (.ts, .js, .mjs), model (.mlir, .pt2) or dump (.hir, .txt, .log, .out)";

/**
 * Adds the flags of the options that the command `name` takes, and of `own` rows that are not in the schema, by group.
 */
export function addFlags(command: Command, name: CommandName, own: Readonly<Record<string, OptionRow>> = {}): Command {
  const rows = [...Object.entries(own), ...namesOf(name).map((each) => [each, rowOf(each)] as const)];
  for (const group of keysOf(optionGroups)) {
    for (const [each, row] of rows.filter(([, of]) => of.group === group)) {
      const usual = row.defaultOf?.[name] ?? row.default;
      command.addOption(flagOption(each, row, usual, row.otherwiseOf?.[name] ?? defaultText(usual)));
      // A default of the flag itself would add "(default: false)" to the help.
      if (usual === false) command.setOptionValueWithSource(each, false, "default");
    }
  }
  return command;
}

/** The options among `names` that the command line gives, without defaults. */
export function givenOptions<K extends OptionName>(command: Command, names: readonly K[]): GivenOptions<K> {
  const given = Object.fromEntries(
    names
      .filter((name) => command.getOptionValueSource(name) === "cli")
      .map((name): [string, unknown] => [name, command.getOptionValue(name)]),
  );
  requireOptions(names, given);
  return given;
}

function flagOption(name: string, row: OptionRow, usual: unknown, usualText: string): Option {
  const { kind, group, otherwise } = row;
  const flag = flagOfRow(name, row);
  const help = otherwise === undefined ? row.help : `${row.help} (default: ${otherwise})`;
  if (kind.argument === null) return new Option(flag, help).helpGroup(`${optionGroups[group]}:`);
  const { alone } = kind;
  const option = new Option(`${flag} ${alone === undefined ? `<${kind.argument}>` : `[${kind.argument}]`}`, help)
    .argParser(parserOf(flag, kind))
    .makeOptionMandatory(row.required ?? false)
    .helpGroup(`${optionGroups[group]}:`);
  if (alone !== undefined) option.preset(alone);
  return usual === undefined ? option : option.default(usual, usualText);
}

function defaultText(value: unknown): string {
  if (value instanceof Map || Array.isArray(value)) return "none";
  return String(value);
}

/** Throws `option-value`. */
function parserOf(flag: string, kind: KindInfo): (text: string) => unknown {
  const earlier: string[] = [];
  return (text) => {
    const value = readValue(flag, kind, text);
    if (kind.separator === null) return value;
    const all = kind.read([...earlier, text].join(kind.separator));
    if (all === undefined) {
      const expected = `each name at most once; ${earlier.join(" and ")} came before`;
      return badValue(flag, text, expected, `remove one of the two ${flag}`);
    }
    earlier.push(text);
    return all;
  };
}

/** Parses a flag's text. Throws `option-value`. */
export function readValue<T>(flag: string, kind: ReadKind<T>, text: string): T {
  const written = kind.corrected?.(text) ?? kind.example;
  const between = kind.alone === undefined ? " " : "=";
  const help = `write it like ${flag}${between}${written}`;
  return kind.read(text) ?? badValue(flag, badPart(kind, text), kind.expected, help);
}

type ReadKind<T> = Pick<OptionKind<T>, "read" | "expected" | "example" | "corrected" | "separator" | "alone">;

/** The first bad value of a list. */
function badPart({ read, separator }: ReadKind<unknown>, text: string): string {
  const parts = separator === null ? [] : text.split(separator);
  return parts.find((part) => read(part) === undefined) ?? text;
}

function badValue(flag: string, text: string, expected: string, help: string): never {
  return fail({
    code: "option-value",
    message: `option ${flag} has a bad value`,
    place: { kind: "option", text: flag },
    found: text === "" ? "nothing" : text,
    expected,
    help,
  });
}
