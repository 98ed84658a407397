/** Makes flags from the schema of options: their parsing and their help. */
import { Command, Option } from "commander";
import { optionsOf } from "../../compile/options/as.ts";
import { type CompileGiven, compileNames } from "../../compile/options/flags-text.ts";
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
import { keysOf } from "../../support/keys-of.ts";
import { isDumpFile } from "../program/dump-file.ts";
import { assignedBy, type AssigningFlag, assigningFlags, type NamedRows } from "./assigning-flags.ts";
import { parserOf } from "./read-value.ts";

/** A command on a program file or a dump, with its flags. `argument`: `[file]` if it can do without. */
export function programCommand(name: CommandName, argument = "<file>", meaning = fileArgument): Command {
  return addFlags(new Command(name).argument(argument, meaning), name);
}

export const fileArgument = "program file (.ts, .js, .mjs), model (.mlir, .pt2) or dump (.hir, .txt, .log, .out)";

/**
 * Adds the flags of the options that the command `name` takes, and of `own` rows that are not in the schema, by group.
 */
export function addFlags(command: Command, name: CommandName, own: Readonly<Record<string, OptionRow>> = {}): Command {
  const rows: NamedRows = [...Object.entries(own), ...namesOf(name).map((each) => [each, rowOf(each)] as const)];
  const assigning = assigningFlags(rows);
  for (const group of keysOf(optionGroups)) {
    for (const [flag, each] of assigning) {
      if (each.row.group === group) command.addOption(assigningOption(command, flag, each));
    }
    for (const [each, row] of rows.filter(([, of]) => of.group === group)) {
      const usual = row.defaultOf?.[name] ?? row.default;
      // A default of the flag itself would add "(default: false)" to the help.
      if (usual === false || (row.within !== undefined && usual !== undefined))
        command.setOptionValueWithSource(each, usual, "default");
      if (row.within !== undefined || each === "schedule") continue;
      command.addOption(flagOption(each, row, usual, row.otherwiseOf?.[name] ?? defaultText(usual)));
    }
  }
  return command;
}

/** Its values become those of the options that it assigns. */
function assigningOption(command: Command, name: string, flag: AssigningFlag): Option {
  const { argument, help, otherwise, group } = flag.row;
  const read = assignedBy(name, flag);
  return new Option(`--${name} <${argument}>`, otherwise === undefined ? help : `${help} (default: ${otherwise})`)
    .helpGroup(`${optionGroups[group]}:`)
    .argParser((text) => {
      const { own, options } = read(text);
      for (const [each, value] of options) command.setOptionValueWithSource(each, value, "cli");
      return own;
    });
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

/** The options that make the Program of `file`, of which `--as` gives several. */
export function compileGiven(command: Command, file: string): CompileGiven {
  return { ...optionsOf(givenOptions(command, ["as"]).as, isDumpFile(file)), ...givenOptions(command, compileNames) };
}

function flagOption(name: string, row: OptionRow, usual: unknown, usualText: string): Option {
  const { kind, group, otherwise } = row;
  const flag = flagOfRow(name, row);
  const help = otherwise === undefined ? row.help : `${row.help} (default: ${otherwise})`;
  const { argument, alone } = kind;
  const value = argument === null ? "" : alone === undefined ? ` <${argument}>` : ` [${argument}]`;
  const option = new Option(`${row.short === undefined ? "" : `-${row.short}, `}${flag}${value}`, help)
    .makeOptionMandatory(row.required ?? false)
    .helpGroup(`${optionGroups[group]}:`);
  // A flag may have another name than its option.
  option.attributeName = () => name;
  if (argument === null) return option;
  option.argParser(parserOf(flag, kind));
  if (alone !== undefined) option.preset(alone);
  return usual === undefined ? option : option.default(usual, usualText);
}

function defaultText(value: unknown): string {
  if (value instanceof Map || Array.isArray(value)) return "none";
  return String(value);
}
