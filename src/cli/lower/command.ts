/** `braid lower`: prints the host program of one rank, what each pass makes of it, or the commands that are recorded of it. */
import { Command, Option } from "commander";
import { printProgram } from "../../commands/print-program.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { loweringOf, requireLinked } from "../../compile/compile.ts";
import { print, printProgramOfStage } from "../../host/print/print.ts";
import { type DumpStyle, defaultDumpStyle, irSpellings } from "../../ir/print-style.ts";
import { lower } from "../../compile/lower.ts";
import { passNames, type PassObserver, rejectFormerName } from "../../passes/pipeline.ts";
import { at } from "../../support/invariant.ts";
import { keysOf } from "../../support/keys-of.ts";
import { buildProgram } from "../program/build-program.ts";
import { type ExitStatus, exitStatus } from "../exit-status.ts";
import { givenDevices, requireNotLowered } from "../program/load-dump.ts";
import { inputSizes } from "../program/input-sizes.ts";
import { loweringOptionsOf } from "../flags/lowering-flags.ts";
import { addChoiceFlags, profileToChooseWith } from "../flags/choice-flags.ts";
import { choice, wholeNumber } from "../flags/option-values.ts";
import { addProgramFlags } from "../flags/program-flags.ts";
import { withProgress } from "../terminal/progress.ts";
import { addRecordingFlags } from "../flags/recording-flags.ts";
import { type CompileFlags, compileFile } from "../program/compile-file.ts";
import type { Terminal } from "../terminal/terminal.ts";

interface LowerFlags extends CompileFlags {
  readonly rank: number;
  readonly printLists: boolean;
  readonly style: DumpStyle;
  readonly printAfter?: string;
}

interface PassText {
  readonly pass: string;
  readonly changed: boolean;
  readonly text: string;
}

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
      return lowerFile(file, flags, command);
    });
    terminal.out(text);
    finish(exitStatus.ok);
  });
}

async function lowerFile(file: string, flags: LowerFlags, command: Command): Promise<string> {
  const { rank, style, printAfter } = flags;
  const devices = (await givenDevices(command, file, flags)) ?? flags.devices;
  requireRank(rank, devices);
  const options = loweringOptionsOf(command);
  requireNotLowered(file, options);
  const profile = await profileToChooseWith(flags);
  const { source, signature, params } = await buildProgram(file, { ...flags, devices });
  // Which lowering options are chosen depends on the sizes, as the commands do.
  const isCompiled = flags.printLists || profile !== null;
  const compiledFile = isCompiled
    ? compileFile(source, { ...flags, devices }, options, inputSizes(signature, flags.size), profile)
    : null;
  const compilation = compiledFile === null ? null : requireLinked(compiledFile.compiled);
  const described = { file, devices, rank, params, options, scheduleChoice: compiledFile?.choice ?? undefined };
  if (flags.printLists && compilation !== null) {
    const lists = printProgram(compilation.program, { ranks: [rank] });
    return flags.json ? `${JSON.stringify({ ...described, lists }, undefined, 2)}\n` : lists;
  }
  const lowering = compilation === null ? options : loweringOf(compilation.options);
  const passes: PassText[] = [];
  const onPass: PassObserver = ({ pass, changed, program }) => {
    if (printAfter !== "all" && printAfter !== pass) return;
    passes.push({ pass, changed, text: printProgramOfStage(program, { style }) });
  };
  const host = "data" in source ? lower(source, { ...lowering, rank, onPass }) : at(source, rank);
  requireRan(printAfter, passes);
  if (!flags.json) return printAfter === undefined ? print(host, { style }) : passes.map(passSection).join("");
  const text = print(host, { style });
  const document = { ...described, style, passes, text, hostProgram: host };
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

function passOrAll(text: string): string {
  rejectFormerName("--print-after", text);
  return choice("--print-after", ["all", ...passNames])(text);
}

function passSection({ pass, changed, text }: PassText): string {
  return `// after ${pass}${changed ? "" : " (unchanged)"}\n${text.trim()}\n\n`;
}

function requireRank(rank: number, devices: number): void {
  if (rank < devices) return;
  fail({
    code: "option-value",
    message: `there is no rank ${rank} among ${devices} ${devices === 1 ? "device" : "devices"}`,
    place: { kind: "option", text: "--rank" },
    found: String(rank),
    expected: `0 to ${devices - 1}`,
    help: `pass a smaller rank, or --devices ${rank + 1} or more`,
  });
}

/** A pass that was left out with --disable-pass has nothing to print. */
function requireRan(printAfter: string | undefined, ran: readonly PassText[]): void {
  if (printAfter === undefined || ran.length > 0) return;
  fail({
    code: "option-value",
    message: `pass ${printAfter} did not run`,
    place: { kind: "option", text: "--print-after" },
    found: printAfter,
    expected: "a pass that runs with these options",
    help: `remove --disable-pass ${printAfter}, or print after another pass`,
  });
}
