/** `braid lower`: prints the host program of one rank, the program after each pass, or the rank's command list. */
import { Command, Option } from "commander";
import { defaultDumpStyle, irSpellings } from "../../ir/print-style.ts";
import { passNames, rejectFormerName } from "../../passes/pipeline.ts";
import { keysOf } from "../../support/keys-of.ts";
import { type ExitStatus, exitStatus } from "../exit-status.ts";
import { givenDevices } from "../program/load-dump.ts";
import { loweringOptionsOf } from "../flags/lowering-flags.ts";
import { addChoiceFlags } from "../flags/choice-flags.ts";
import { choice, wholeNumber } from "../flags/option-values.ts";
import { addProgramFlags } from "../flags/program-flags.ts";
import { withProgress } from "../terminal/progress.ts";
import { addRecordingFlags } from "../flags/recording-flags.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { lowerFile, type LowerFlags } from "./lower-file.ts";

const styles = keysOf(irSpellings);

export function lowerCommand(terminal: Terminal, finish: (status: ExitStatus) => void): Command {
  const command = addChoiceFlags(addRecordingFlags(addProgramFlags(new Command("lower"))))
    .description("Lowers a program and prints the host program of one rank in nvFuser's dump format.")
    .addOption(new Option("--rank <r>", "the rank to lower for").argParser(wholeNumber("--rank", 0)).default(0))
    .addOption(
      new Option(`--style <${styles.join("|")}>`, "era of the dump format")
        .argParser(choice("--style", styles))
        .default(defaultDumpStyle),
    )
    .addOption(
      new Option("--print-after <all|pass>", `print after each pass instead: ${passNames.join(", ")}`).argParser(
        passOrAll,
      ),
    )
    .addOption(
      new Option(
        "--print-lists",
        "print the commands that run instead: recorded, linked and under the schedule",
      ).default(false),
    );
  return command.action(async (file: string, flags: LowerFlags) => {
    const text = await withProgress(terminal, async (step) => {
      step(`lowering ${file}`);
      const devices = (await givenDevices(command, file, flags)) ?? flags.devices;
      return lowerFile(file, { ...flags, devices }, loweringOptionsOf(command));
    });
    terminal.out(text);
    finish(exitStatus.ok);
  });
}

function passOrAll(text: string): string {
  rejectFormerName("--print-after", text);
  return choice("--print-after", ["all", ...passNames])(text);
}
