/** Flags made from the schema of options: how they are parsed, and what their help says. */
import { type Command, Option } from "commander";
import type { KindInfo } from "../../compile/option-kinds.ts";
import {
  type CommandName,
  flagOfRow,
  type GivenOptions,
  type OptionName,
  type OptionRow,
  optionGroups,
  options,
} from "../../compile/options.ts";
import { requireOptions } from "../../compile/resolve-options.ts";
import { badValue } from "./option-values.ts";

/** Adds the flags of these options, as the command `name` takes them. */
export function addOptionFlags(command: Command, name: CommandName, names: readonly OptionName[]): Command {
  for (const each of names) {
    const row: OptionRow = options[each];
    const usual = row.defaultOf?.[name] ?? row.default;
    command.addOption(flagOption(each, row, usual));
    // As the default of the flag itself, the help would say "(default: false)".
    if (usual === false) command.setOptionValueWithSource(each, false, "default");
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

function flagOption(name: OptionName, row: OptionRow, usual: unknown): Option {
  const { kind, group, otherwise } = row;
  const flag = flagOfRow(name, row);
  const help = otherwise === undefined ? row.help : `${row.help} (default: ${otherwise})`;
  if (kind.argument === null) return new Option(flag, help).helpGroup(`${optionGroups[group]}:`);
  const option = new Option(`${flag} <${kind.argument}>`, help)
    .argParser(parserOf(flag, kind))
    .helpGroup(`${optionGroups[group]}:`);
  return usual === undefined ? option : option.default(usual, defaultText(usual));
}

function defaultText(value: unknown): string {
  if (value instanceof Map || Array.isArray(value)) return "none";
  return String(value);
}

/** Throws `option-value`. */
function parserOf(flag: string, kind: KindInfo): (text: string) => unknown {
  const earlier: string[] = [];
  return (text) => {
    const value = kind.read(text);
    if (value === undefined) return badValue(flag, text, kind.expected, `write it like ${flag} ${kind.example}`);
    if (!kind.repeatable) return value;
    const all = kind.read([...earlier, text].join(","));
    if (all === undefined) {
      const expected = `each name at most once; ${earlier.join(" and ")} came before`;
      return badValue(flag, text, expected, `remove one of the two ${flag}`);
    }
    earlier.push(text);
    return all;
  };
}
