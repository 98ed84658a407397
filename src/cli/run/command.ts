/** `braid run`: lowers, records, links and runs a program on all its devices, and checks the result if asked to. */
import { Command, Option } from "commander";
import { blasUses } from "../../cpu.ts";
import { graphUses, requireGpus } from "../../cuda.ts";
import { renderDiagnostic } from "../../diagnostics/diagnostic.ts";
import type { World } from "../../launch/join-world.ts";
import { unreachable } from "../../support/unreachable.ts";
import { addChoiceFlags } from "../flags/choice-flags.ts";
import { type ExitStatus, exitStatus } from "../exit-status.ts";
import { loweringOptionsOf } from "../flags/lowering-flags.ts";
import { choice, positiveNumber, wholeNumber } from "../flags/option-values.ts";
import { givenDevices } from "../program/load-dump.ts";
import { addProgramFlags } from "../flags/program-flags.ts";
import { withProgress } from "../terminal/progress.ts";
import { addRecordingFlags } from "../flags/recording-flags.ts";
import { chooseBackend, commonOptions } from "./backend.ts";
import { runFile, type RunFlags } from "./run-file.ts";
import { runDocument, runText } from "./run-text.ts";
import { runAsRank } from "../ranks/run-as-rank.ts";
import { runInProcesses } from "../ranks/run-in-processes.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { whereToRun } from "../ranks/where-to-run.ts";

/** Milliseconds that ranks may differ by on their way to the same point, beyond the time that a run may take: compiling kernels, say. */
const rankSlack = 60_000;

/** `args` are those of the whole command line, for processes that run it again. */
export function runCommand(
  terminal: Terminal,
  finish: (status: ExitStatus) => void,
  args: readonly string[] = [],
): Command {
  const command = addChoiceFlags(addRecordingFlags(addProgramFlags(new Command("run"))))
    .description("Runs a program on all its devices, with random inputs.")
    .addOption(new Option("--repeat <n>", "run n times").argParser(wholeNumber("--repeat", 1)).default(1))
    .addOption(new Option("--check", "compare with the oracle and say the largest error").default(false))
    .addOption(new Option("--seed <s>", "seed of the random inputs").argParser(wholeNumber("--seed", 0)).default(0))
    .addOption(
      new Option(
        "--schedule <order>",
        "order of streams on one thread: seed:S, hold:RANK:COMMAND, or a file of RANK:STREAM lines",
      ),
    )
    .addOption(
      new Option(
        `--blas <${blasUses.join("|")}>`,
        "float and double products through a BLAS of the system if there is one, or the same bits on every machine",
      )
        .argParser(choice("--blas", blasUses))
        .default("auto"),
    )
    .addOption(
      new Option(`--graph <${graphUses.join("|")}>`, "replay runs as CUDA graphs (--on cuda)")
        .argParser(choice("--graph", graphUses))
        .default("auto"),
    )
    .addOption(
      new Option(
        "--verify <on|off>",
        "refuse a program in which the verifier finds something (default: on, but off with --schedule)",
      ).argParser(choice("--verify", ["on", "off"])),
    )
    .addOption(
      new Option("--timeout <seconds>", "end a run that takes longer")
        .argParser(positiveNumber("--timeout", 30))
        .default(30),
    )
    .addOption(new Option("--print-host", "print the host program of rank 0 first").default(false))
    .addOption(new Option("--timeline", "draw the streams of rank 0 over the last run").default(false))
    .addOption(new Option("--trace <file>", "write the last run as a trace for ui.perfetto.dev"));
  return command.action(async (file: string, flags: RunFlags) => {
    const given = await givenDevices(command, file, flags);
    const where = whereToRun(flags.on, given, flags.devices);
    const run = async (world: World | null): Promise<ExitStatus> => {
      const [here, lowering] = [{ ...flags, devices: where.devices }, loweringOptionsOf(command)];
      const result = await withProgress(terminal, async (step) => {
        const backend = await chooseBackend(here, world, commonOptions(file, here, lowering));
        return runFile(file, here, lowering, { backend, world, step });
      });
      if (result === null) return exitStatus.ok;
      terminal.out(flags.json ? `${JSON.stringify(runDocument(result), undefined, 2)}\n` : runText(result, terminal));
      for (const failure of result.failures) terminal.err(`${renderDiagnostic(failure)}\n`);
      return result.failures.length === 0 ? exitStatus.ok : exitStatus.checkFailed;
    };
    const exchangeTimeout = Math.ceil(flags.timeout * 1000) + rankSlack;
    switch (where.kind) {
      case "here":
        return finish(await run(null));
      case "processes":
        requireGpus(where.devices);
        return finish(await runInProcesses(where.devices, args, exchangeTimeout, terminal));
      case "rank":
        return finish(await runAsRank(where, exchangeTimeout, run));
      default:
        unreachable(where);
    }
  });
}
