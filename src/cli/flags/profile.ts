/** Reads the machine profile that `--schedule-choice auto --profile FILE` names. */
import { packageFile } from "../../backends/package-file.ts";
import type { Target } from "../../compile/compile.ts";
import type { Options } from "../../compile/options.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import type { MachineProfile } from "../../simulate/machine-profile.ts";
import { systemReason } from "../../support/system-reason.ts";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/**
 * The profile to choose a schedule with, or with `explain`, to predict with; null if there is none. Throws `option-value`, `file-unreadable` and
 * `profile-invalid`.
 */
export async function profileToChooseWith({
  scheduleChoice,
  profile,
  explain = false,
}: Options<"scheduleChoice" | "profile"> & { readonly explain?: boolean }): Promise<MachineProfile | null> {
  if (scheduleChoice === "given") {
    if (profile === undefined) return null;
    if (explain) return parsedProfile(profile);
    return mismatch("--profile", profile, "--schedule-choice auto with --profile, or no --profile");
  }
  if (profile === undefined) return mismatch("--schedule-choice", "auto", "--profile FILE with --schedule-choice auto");
  return parsedProfile(profile);
}

/** The profile to predict with. Throws `option-value`, `file-unreadable` and `profile-invalid`. */
export async function profileToPredictWith({ profile }: Options<"profile">): Promise<MachineProfile> {
  if (profile !== undefined) return parsedProfile(profile);
  return fail({
    code: "option-value",
    message: "a prediction needs the profile of a machine",
    place: { kind: "option", text: "--profile" },
    found: "no --profile",
    expected: ["a JSON file that braid calibrate wrote", ...shippedProfiles()].join(", or "),
    help: `add ${usualProfile()}, or measure this machine with braid calibrate`,
  });
}

/** Where a program runs that is predicted with the profile. */
export function targetOfProfile({ machine, on }: MachineProfile): Target {
  return on ?? (isOfGpus(machine) ? "cuda" : "cpu");
}

/** Older profiles say it in the machine's name. */
function isOfGpus(machine: string): boolean {
  return /\bCUDA\b/u.test(machine);
}

/** Throws `option-value` if the profile says that it is for another back end. */
export function requireProfileOf(on: Target, { machine, on: measured }: MachineProfile): void {
  const of = measured ?? (isOfGpus(machine) ? "cuda" : on);
  if (of === on) return;
  if (on === "cuda") {
    fail({
      code: "option-value",
      message: "the profile is of a CPU, and the program is for GPUs",
      place: { kind: "option", text: "--profile" },
      found: `${machine}, with --on cuda`,
      expected: "no --on, or a profile of GPUs",
      help: `leave --on out, or name a profile of GPUs: ${usualProfile()}`,
    });
  }
  fail({
    code: "option-value",
    message: "the profile is of GPUs, and the program is for the CPU",
    place: { kind: "option", text: "--profile" },
    found: `${machine}, with --on cpu`,
    expected: "no --on, or a profile of this machine's CPU",
    help: "leave --on out, or measure the CPU: braid calibrate --on cpu --out cpu.json",
  });
}

function usualProfile(): string {
  return `--profile ${shippedProfiles().findLast((name) => name.includes("H200")) ?? "FILE"}`;
}

async function parsedProfile(file: string): Promise<MachineProfile> {
  const { parseProfile } = await import("../../simulate/parse-profile.ts");
  return parseProfile(await readProfile(file), file);
}

/** A file takes precedence over a shipped profile of the same name. */
async function readProfile(file: string): Promise<string> {
  try {
    const { readRegularText } = await import("../../backends/regular-file.ts");
    return await readRegularText(file);
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
    message: "one of --schedule-choice auto and --profile is missing",
    place: { kind: "option", text },
    found,
    expected,
    help: "braid calibrate measures a machine and writes its profile",
  });
}

/** The machine profiles that come with Braid: `profiles/NAME.json` of the package, wherever it is installed. */
const folder = packageFile("profiles/");
const extension = ".json";

/** In alphabetical order; empty if the folder is missing, as in a copy of only the built files. */
function shippedProfiles(): readonly string[] {
  try {
    return readdirSync(fileURLToPath(folder))
      .filter((file) => file.endsWith(extension))
      .map((file) => file.slice(0, -extension.length))
      .sort();
  } catch {
    return [];
  }
}

/** The text of a shipped profile; null for an unknown name. */
function readShippedProfile(name: string): string | null {
  return shippedProfiles().includes(name) ? readFileSync(new URL(`${name}${extension}`, folder), "utf8") : null;
}
