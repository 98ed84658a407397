/** The flags that every command on a program file has: the device count, parameters, the lowering options. */
import { type Command, Option } from "commander";
import { addLoweringFlags } from "./lowering-flags.ts";
import { assignment, numbers, wholeNumber } from "./option-values.ts";

export interface ProgramFlags {
  readonly devices: number;
  readonly set: ReadonlyMap<string, number>;
  readonly json: boolean;
}

export function addProgramFlags(command: Command): Command {
  command
    .argument("<file>", "program file: .ts, .js or .mjs")
    .addOption(new Option("--devices <n>", "number of devices").argParser(wholeNumber("--devices", 1)).default(8))
    .addOption(
      new Option("--set <name=value>", "replace a parameter of the program; may be repeated")
        .argParser(assignment("--set", "M=32", numbers))
        .default(new Map(), "the program's own values"),
    )
    .addOption(new Option("--json", "print JSON").default(false));
  return addLoweringFlags(command);
}
