/** `braid compile`: writes a verified program as a plan, which runs without the program and without compiling it. */
import { Command } from "commander";
import { counted } from "../../support/wording.ts";
import { type ExitStatus, exitStatus } from "../exit-status.ts";
import { addFlags, compileGiven, fileArgument } from "../flags/option-flags.ts";
import { whileBuilding } from "../program/apart/build-apart.ts";
import { givenDevices } from "../program/given-devices.ts";
import { withProgress } from "../terminal/progress.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { type CompileCommandFlags, type CompileResult, compileRows } from "./compile-plan.ts";

export function compileCommand(terminal: Terminal, finish: (status: ExitStatus) => void): Command {
  const command = addFlags(new Command("compile").argument("<file>", fileArgument), "compile", compileRows).description(
    "Writes a verified program as a plan: files with all that GPUs need to run it.",
  );
  return command.action(async (file: string, flags: CompileCommandFlags) => {
    const all = { ...flags, devices: (await givenDevices(command, file, flags)) ?? flags.devices };
    const given = { backend: flags.backend, ...compileGiven(command, file) };
    const result = await withProgress(terminal, (step) =>
      whileBuilding(file, all, terminal.err, async (building) => {
        const { compilePlan } = await import("./compile-plan.ts");
        return compilePlan(file, all, given, { building, step });
      }),
    );
    terminal.out(flags.json ? `${JSON.stringify(result, undefined, 2)}\n` : compileText(result));
    finish(exitStatus.ok);
  });
}

function compileText({ folder, devices, choice, commands, operations, kernels, bytes }: CompileResult): string {
  const parts = [
    counted(devices, "device"),
    `${counted(commands, "command")} verified`,
    counted(operations, "operation"),
    counted(kernels, "kernel"),
    `${(bytes / 1000).toFixed(1)} KB`,
  ];
  return [...(choice === null ? [] : [`schedule: ${choice}`]), `${folder}: ${parts.join(", ")}`, ""].join("\n");
}
