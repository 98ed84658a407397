/**
 * The lowering options as flags. Everything is made from `loweringOptionSchema`: a new row there is a new flag here.
 */
import { type Command, Option } from "commander";
import { type LoweringOptions, loweringOptionSchema } from "../../passes/options.ts";
import { choice, names } from "./option-values.ts";

const rows = Object.entries(loweringOptionSchema);

export function addLoweringFlags(command: Command): Command {
  for (const [, row] of rows) {
    switch (row.type) {
      case "choice":
        command.addOption(
          new Option(`${row.flag} <${row.choices.join("|")}>`, row.help)
            .argParser(choice<string>(row.flag, row.choices))
            .default(row.default),
        );
        break;
      case "switch":
        command.addOption(new Option(row.flag, row.help));
        break;
      case "names":
        command.addOption(
          new Option(`${row.flag} <name>`, `${row.help}; may be repeated`).argParser(names).default([], "none"),
        );
        break;
    }
  }
  return command;
}

/**
 * The options that the user set, by their names in the API. Values are as parsed by the flags' own parsers, and
 * `lower` checks them against the schema again.
 */
export function loweringOptionsOf(command: Command): Partial<LoweringOptions> {
  return Object.fromEntries(
    rows.flatMap(([name, row]) => {
      const key = new Option(row.flag).attributeName();
      const value: unknown = command.getOptionValue(key);
      return command.getOptionValueSource(key) === "cli" ? [[name, value]] : [];
    }),
  );
}

/** Lowering options as the command line gives them: flags and what was said with each. */
export function loweringFlagsOf(options: Partial<LoweringOptions>): readonly (readonly [string, string])[] {
  const values = new Map<string, unknown>(Object.entries(options));
  return rows.flatMap(([name, row]) => {
    if (!values.has(name)) return [];
    return [[row.flag, row.type === "switch" ? "given" : String(values.get(name))]];
  });
}
