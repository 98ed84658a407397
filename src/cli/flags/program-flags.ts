/** The flags that every command on a program file or dump has: the device count, parameters, the lowering options. */
import { type Command, Option } from "commander";
import { addLoweringFlags } from "./lowering-flags.ts";
import { assignment, choice, numbers, wholeNumber } from "./option-values.ts";
import type { DumpFlags } from "../program/load-dump.ts";

const rootMeanings = ["era", "devices", "positions"] as const;

export interface ProgramFlags extends DumpFlags {
  readonly devices: number;
  readonly set: ReadonlyMap<string, number>;
  readonly json: boolean;
}

export function addProgramFlags(command: Command): Command {
  command
    .argument("<file>", "program file (.ts, .js, .mjs) or dump (.hir, .txt, .log, .out)")
    .addOption(new Option("--devices <n>", "number of devices").argParser(wholeNumber("--devices", 1)).default(8))
    .addOption(
      new Option("--set <name=value>", "replace a parameter of the program; may be repeated")
        .argParser(assignment("--set", "M=32", numbers))
        .default(new Map(), "the program's own values"),
    )
    .addOption(
      new Option("--container <n>", "of a dump: the container that all ranks run, counted from 0").argParser(
        wholeNumber("--container", 0),
      ),
    )
    .addOption(
      new Option(
        `--roots <${rootMeanings.join("|")}>`,
        "of a dump: whether constant roots are device ids or positions in the team",
      )
        .argParser(choice("--roots", rootMeanings))
        .default("era", "by the dump's era"),
    )
    .addOption(new Option("--json", "print JSON").default(false));
  return addLoweringFlags(command);
}
