/** Options as the page has them, texts by name, to the values that `compile` takes. */
import { type CompileOptions, targetOf } from "../../src/compile/compile.ts";
import { optionsOf } from "../../src/compile/options/as.ts";
import {
  type GivenOptions,
  loweringNames,
  type OptionName,
  optionNames,
  recordingNames,
  optionRow,
  scheduleNames,
} from "../../src/compile/options.ts";
import { optionPlace, pickOptions, requireOptions } from "../../src/compile/options/resolve.ts";
import { fail } from "../../src/diagnostics/diagnostic.ts";

/** Throws `bad-option` for a text that the option does not take. What `as` stands for is among the options. */
export function readOptions(texts: Readonly<Record<string, string>>, isDump: boolean): GivenOptions<OptionName> {
  const names = optionNames.filter((name) => texts[name] !== undefined);
  const values = Object.fromEntries(names.map((name) => [name, readOption(name, texts[name] ?? "")]));
  requireOptions(optionNames, values);
  return { ...optionsOf(values.as, isDump), ...values };
}

function readOption(name: OptionName, text: string): unknown {
  const { kind } = optionRow(name);
  const value = kind.read(text);
  if (value !== undefined) return value;
  return fail({
    code: "bad-option",
    message: `option ${name} has a bad value`,
    place: optionPlace(name),
    found: text === "" ? "nothing" : text,
    expected: kind.expected,
    help: `write a value such as ${kind.example}, or clear the field`,
  });
}

/** The options of `compile` among them. */
export function compileOptionsOf(given: GivenOptions<OptionName>): Omit<CompileOptions, "devices"> {
  const { on, sizes, scalar } = given;
  return {
    ...pickOptions([...loweringNames, ...recordingNames], given),
    ...(on === undefined ? {} : { on: targetOf(on) }),
    ...(sizes === undefined ? {} : { sizes }),
    ...(scalar === undefined ? {} : { scalars: scalar }),
    schedule: pickOptions(scheduleNames, given),
  };
}
