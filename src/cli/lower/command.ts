/** `braid lower`: prints the host program of one rank, the program after each pass, or the rank's command list. */
import type { Command } from "commander";
import { type ExitStatus, exitStatus } from "../exit-status.ts";
import { compileGiven, programCommand } from "../flags/option-flags.ts";
import { whileBuilding } from "../program/apart/build-apart.ts";
import { givenDevices } from "../program/given-devices.ts";
import { withProgress } from "../terminal/progress.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { LowerFlags } from "./lower-file.ts";

export function lowerCommand(terminal: Terminal, finish: (status: ExitStatus) => void): Command {
  const command = programCommand("lower").description(
    "Lowers a program and prints the host program of one rank in nvFuser's dump format.",
  );
  return command.action(async (file: string, flags: LowerFlags) => {
    const notes: string[] = [];
    const text = await withProgress(terminal, async (step) => {
      step(`lowering ${file}`);
      const given = compileGiven(command, file);
      const all = { ...flags, devices: (await givenDevices(command, file, flags)) ?? flags.devices };
      return whileBuilding(file, all, terminal.err, async (building) => {
        const { lowerFile } = await import("./lower-file.ts");
        const note = (lines: readonly string[]): void => void notes.push(...lines);
        return lowerFile(file, all, given, { building, step, note, isWatched: terminal.interactive });
      });
    });
    terminal.out(text);
    // After the program, where a terminal shows both.
    if (notes.length > 0) terminal.err(`${notes.join("\n")}\n`);
    finish(exitStatus.ok);
  });
}
