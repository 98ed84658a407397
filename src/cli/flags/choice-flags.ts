/** The flags of a chosen schedule: `--schedule-choice auto --profile FILE`. */
import { readFile } from "node:fs/promises";
import { type Command, Option } from "commander";
import { fail } from "../../diagnostics/diagnostic.ts";
import type { OptionValue } from "../../compile/options.ts";
import type { MachineProfile } from "../../simulate/machine-profile.ts";
import { parseProfile } from "../../simulate/parse-profile.ts";
import { choice } from "./option-values.ts";
import { readShippedProfile, shippedProfiles } from "./shipped-profiles.ts";
import { systemReason } from "../../support/system-reason.ts";

export interface ChoiceFlags {
  readonly scheduleChoice: OptionValue<"scheduleChoice">;
  /** The file of a machine profile, or the name of a shipped one. */
  readonly profile?: string;
}

export const profileHelp =
  "what this machine was measured to take: a file that braid calibrate wrote, or the name of a shipped profile";

export function addChoiceFlags(command: Command): Command {
  return command
    .addOption(
      new Option(
        "--schedule-choice <given|auto>",
        "the schedule of the flags, or the fastest of many, simulated with --profile",
      )
        .argParser(choice("--schedule-choice", ["given", "auto"]))
        .default("given"),
    )
    .addOption(new Option("--profile <file>", profileHelp));
}

/** The profile to choose with; null where nothing is to be chosen. Throws `option-value`, `file-unreadable` and `profile-invalid`. */
export async function profileToChooseWith({ scheduleChoice, profile }: ChoiceFlags): Promise<MachineProfile | null> {
  if (scheduleChoice === "given") {
    if (profile !== undefined) mismatch("--profile", profile, "--schedule-choice auto with it, or no --profile");
    return null;
  }
  if (profile === undefined) return mismatch("--schedule-choice", "auto", "--profile FILE with it");
  return parseProfile(await readProfile(profile), profile);
}

/** A file goes before a shipped profile of the same name. */
async function readProfile(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    const shipped = readShippedProfile(file);
    if (shipped !== null) return shipped;
    return fail({
      code: "file-unreadable",
      message: "the machine profile cannot be read",
      place: { kind: "option", text: "--profile" },
      found: `${file}: ${systemReason(error)}`,
      expected: ["a JSON file that braid calibrate wrote", ...shippedProfiles()].join(", or "),
      help: "check the name, or measure this machine with braid calibrate",
    });
  }
}

function mismatch(text: string, found: string, expected: string): never {
  return fail({
    code: "option-value",
    message: "a schedule is chosen by simulating it on the machine of a profile",
    place: { kind: "option", text },
    found,
    expected,
    help: "braid calibrate measures a machine and writes its profile",
  });
}
