/**
 * The command line as a function of its arguments: parses them, runs one command and answers with its exit status.
 */
import { readFileSync } from "node:fs";
import { Command } from "commander";
import { benchCommand } from "./bench/command.ts";
import { calibrateCommand } from "./calibrate/command.ts";
import { doctorCommand } from "./doctor/command.ts";
import { type ExitStatus, exitStatus } from "./exit-status.ts";
import { lowerCommand } from "./lower/command.ts";
import { reportError } from "./terminal/report-error.ts";
import { runCommand } from "./run/command.ts";
import type { Terminal } from "./terminal/terminal.ts";
import { usageError } from "./flags/usage-error.ts";
import { verifyCommand } from "./verify/command.ts";

/** Runs one command line, `args` without node and script. Never rejects. */
export async function runCli(args: readonly string[], terminal: Terminal): Promise<ExitStatus> {
  // Commander gives no value back from an action; the action leaves its status here.
  let status: ExitStatus = exitStatus.ok;
  const finish = (result: ExitStatus): void => {
    status = result;
  };
  const braid = new Command("braid")
    .description("Compiles sharded tensor programs into host programs that overlap communication with computation.")
    .version(packageVersion(), "--version")
    .addCommand(lowerCommand(terminal, finish))
    .addCommand(runCommand(terminal, finish, args))
    .addCommand(verifyCommand(terminal, finish))
    .addCommand(benchCommand(terminal, finish, args))
    .addCommand(calibrateCommand(terminal, finish, args))
    .addCommand(doctorCommand(terminal, finish));
  for (const command of [braid, ...braid.commands]) {
    command.configureOutput({ writeOut: terminal.out, writeErr: () => {} }).exitOverride((error) => {
      throw error.exitCode === 0 ? error : usageError(error, command);
    });
  }
  try {
    if (args.length === 0) {
      terminal.err(braid.helpInformation());
      return exitStatus.badInput;
    }
    await braid.parseAsync(args, { from: "user" });
    return status;
  } catch (error) {
    return reportError(error, terminal, args.includes("--json"));
  }
}

function packageVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  const [, version = "unknown"] = /"version": "([^"]+)"/.exec(text) ?? [];
  return version;
}
