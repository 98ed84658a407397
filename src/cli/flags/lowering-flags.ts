/** The lowering options as flags. */
import type { Command } from "commander";
import { flagOf, type GivenOptions, type LoweringName, loweringNames } from "../../compile/options.ts";
import { addOptionFlags, givenOptions } from "./option-flags.ts";

export function addLoweringFlags(command: Command): Command {
  return addOptionFlags(command, "lower", loweringNames);
}

export function loweringOptionsOf(command: Command): GivenOptions<LoweringName> {
  return givenOptions(command, loweringNames);
}

/** Lowering options as the command line gives them: flags and what was said with each. */
export function loweringFlagsOf(given: GivenOptions<LoweringName>): readonly (readonly [string, string])[] {
  return loweringNames.flatMap((name) =>
    given[name] === undefined ? [] : [[flagOf(name), String(given[name])] as const],
  );
}
