/** The options that ranks in separate processes must have in common, as text. */
import {
  flagOf,
  namesOf,
  type NamesOf,
  type OptionName,
  type Options,
  type OptionValue,
  optionRow,
} from "../../compile/options.ts";
import { type CompileGiven, compileNames } from "../../compile/options/flags-text.ts";
import { printOption } from "../../compile/options/resolve.ts";

/** Keyed by flag. Options that only affect what is printed may differ. */
export function comparedOptions(flags: Options<NamesOf<"run">>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    namesOf("run")
      .filter((name) => optionRow(name).group !== "output")
      .flatMap((name) => textOf(name, flags[name])),
  );
}

/** The options that `run` and `explain` have in common and that make a Program, keyed by flag. */
export function programOptions(flags: Options<NamesOf<"run"> & NamesOf<"explain">>): Readonly<Record<string, string>> {
  const shared = namesOf("run").filter((name): name is NamesOf<"run"> & NamesOf<"explain"> =>
    namesOf("explain").some((other) => other === name),
  );
  return Object.fromEntries(
    shared
      .filter((name) => optionRow(name).group !== "output" && name !== "timeout")
      .filter((name) => name !== "profile" || flags.schedule === "auto")
      .flatMap((name) => textOf(name, flags[name])),
  );
}

/** Given options as text, keyed by flag. */
export function printedGiven(given: CompileGiven): Readonly<Record<string, string>> {
  return Object.fromEntries(compileNames.flatMap((name) => textOf(name, given[name])));
}

/** `--as` stands for several options. */
function asText(name: OptionName, value: unknown): readonly (readonly [string, string])[] {
  if (name === "nvfuserLimits") return value === true ? [["--as", "nvfuser"]] : [];
  return name === "allocator" && value === "braid" ? [["--as", "braid"]] : [];
}

function textOf<K extends OptionName>(
  name: K,
  value: OptionValue<K> | undefined,
): readonly (readonly [string, string])[] {
  if (value === undefined) return [];
  if (optionRow(name).within === "as") return asText(name, value);
  return [[flagOf(name), printOption(name, value)]];
}
