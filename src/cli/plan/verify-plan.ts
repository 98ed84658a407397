/** `braid verify` on a plan: reads it back, which checks every file and every address, and says what it is. */
import { flagOf, namesOf } from "../../compile/options.ts";
import type { Command } from "commander";
import { fail } from "../../diagnostics/diagnostic.ts";
import { counted } from "../../support/wording.ts";
import { type ExitStatus, exitStatus } from "../exit-status.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { readPlanFolder } from "./plan-folder.ts";

/** Throws `plan-invalid` and others of `readPlan`. */
export async function verifyPlan(
  file: string,
  command: Command,
  json: boolean,
  { out, outColors }: Terminal,
): Promise<ExitStatus> {
  const other = namesOf("verify").find((name) => name !== "json" && command.getOptionValueSource(name) === "cli");
  if (other !== undefined) verified(flagOf(other));
  const { document, hash, ranks } = await readPlanFolder(file);
  const { verified: verdict, world, target, braid, program } = document;
  const operations = ranks.reduce((sum, { ops }) => sum + ops.ops.length, 0);
  if (json) {
    out(
      `${JSON.stringify({ plan: file, ok: true, hash, world, target, braid, program, verified: verdict, operations }, undefined, 2)}\n`,
    );
    return exitStatus.ok;
  }
  const scale = `${counted(world, "device")}, ${counted(verdict.commands, "command")} on ${counted(verdict.streams, "queue")}`;
  out(
    [
      `${file}: ${outColors.green("ok")}; ${scale}, verified by Braid ${verdict.verifier}; ${counted(operations, "operation")}`,
      `hash ${hash}`,
      `for GPUs of compute capability ${(target.capability / 10).toFixed(1)} with ${target.multiprocessors} multiprocessors, or more`,
      "",
    ].join("\n"),
  );
  return exitStatus.ok;
}

function verified(flag: string): never {
  return fail("option-value", "a plan was verified when it was made", {
    place: { kind: "option", text: flag },
    found: `${flag} for a plan`,
    expected: "no option but --json",
    help: `leave ${flag} out, or verify the program file that the plan was made of`,
  });
}
