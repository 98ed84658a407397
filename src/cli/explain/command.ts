/** `braid explain`: predicts a program's time on a measured machine, and says what is exposed and why. */
import type { Command } from "commander";
import { type ExitStatus, exitStatus } from "../exit-status.ts";
import { compileNames } from "../flags/compile-names.ts";
import { givenOptions, programCommand } from "../flags/option-flags.ts";
import { whileBuilding } from "../program/apart/build-apart.ts";
import { givenDevices } from "../program/given-devices.ts";
import { withProgress } from "../terminal/progress.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { ExplainFlags, ExplainResult } from "./explain-file.ts";

export function explainCommand(terminal: Terminal, finish: (status: ExitStatus) => void): Command {
  const command = programCommand("explain").description(
    "Predicts a program's time on a measured machine, without a GPU, and says what is exposed and why.",
  );
  return command.action(async (file: string, flags: ExplainFlags) => {
    const given = givenOptions(command, compileNames);
    const all = { ...flags, devices: (await givenDevices(command, file, flags)) ?? flags.devices };
    const explained = async (used: ExplainFlags): Promise<ExplainResult> =>
      withProgress(terminal, (step) =>
        whileBuilding(file, used, terminal.err, async (building) => {
          const { explainFile } = await import("./explain-file.ts");
          return explainFile(file, used, given, { building, step });
        }),
      );
    const result = await explained({ ...all, whatIf: new Map() });
    const devices = Number(flags.whatIf.get("devices") ?? all.devices);
    const other = flags.whatIf.size === 0 ? null : await explained({ ...all, devices });
    const { explainDocument, explainText } = await import("./explain-text.ts");
    const document = (): object => ({
      ...explainDocument(result),
      whatIf: other === null ? undefined : { changes: Object.fromEntries(flags.whatIf), ...explainDocument(other) },
    });
    terminal.out(flags.json ? `${JSON.stringify(document(), undefined, 2)}\n` : explainText(result, other, terminal));
    finish(exitStatus.ok);
  });
}
