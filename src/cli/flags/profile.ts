/** Reads the machine profile that `--profile` names, or finds the one of this machine. */
import { packageFile } from "../../backends/package-file.ts";
import type { Target } from "../../compile/compile.ts";
import type { CompileGiven } from "../../compile/options/flags-text.ts";
import type { Options } from "../../compile/options.ts";
import type { Schedule } from "../../compile/options/schedule.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import type { MachineProfile } from "../../simulate/machine-profile.ts";
import { suggestion, systemReason } from "../../support/wording.ts";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import * as v from "valibot";

/**
 * The profile to choose a schedule with, or with `explain`, to predict with; null if there is none. Throws `option-value`,
 * `file-unreadable` and `profile-invalid`.
 */
export async function profileToChooseWith({
  schedule,
  profile,
  explain = false,
}: Options<"schedule" | "profile"> & { readonly explain?: boolean }): Promise<MachineProfile | null> {
  if (profile !== undefined && (isOpen(schedule) || explain)) return parsedProfile(profile);
  if (profile !== undefined) {
    return fail("option-value", "a schedule is given, and a profile to choose one", {
      place: { kind: "option", text: "--profile" },
      found: profile,
      expected: "--schedule auto with --profile, or no --profile",
      help: "leave --profile out, or --schedule",
    });
  }
  if (schedule !== "auto") return null;
  return fail("option-value", "there is no profile to choose a schedule with", {
    place: { kind: "option", text: "--schedule" },
    found: "auto",
    expected: "--profile FILE with --schedule auto",
    help: "braid calibrate measures a machine and writes its profile",
  });
}

/** Whether the schedule is to be chosen if it can be. */
function isOpen(schedule: Schedule | undefined): boolean {
  return schedule === undefined || schedule === "auto";
}

/**
 * The flags, with the shipped profile of this machine's GPUs if the program is for GPUs and nothing says how it is to be
 * scheduled.
 */
export async function withOwnProfile<F extends Options<"on" | "schedule" | "profile" | "devices">>(
  flags: F,
  { streams }: CompileGiven,
): Promise<F> {
  const { on, schedule, devices } = flags;
  if (on !== "cuda" || flags.profile !== undefined || !isOpen(schedule) || streams !== undefined) return flags;
  const profile = await ownProfile(devices);
  return profile === null ? flags : { ...flags, profile };
}

/** The name of the shipped profile of this machine with as many GPUs; null if there is none. */
export async function ownProfile(devices: number): Promise<string | null> {
  const { firstGpuName } = await import("../../backends/cuda/gpu.ts");
  const gpu = firstGpuName();
  return gpu === null ? null : shippedProfileOf(gpu, devices);
}

/**
 * `4xH200` for 4 and `NVIDIA H200`, as the driver calls a GPU; null without a measured profile of such a machine.
 */
export function shippedProfileOf(gpu: string, devices: number): string | null {
  const fits = (name: string): boolean => {
    const { machine } = v.parse(withMachine, JSON.parse(readShippedProfile(name) ?? "{}"));
    return machine.startsWith(`${devices} x ${gpu}, `) && !machine.includes("not measured");
  };
  return shippedProfiles().find(fits) ?? null;
}

const withMachine = v.object({ machine: v.string() });

/** The profile to predict with. Throws `option-value`, `file-unreadable` and `profile-invalid`. */
export async function profileToPredictWith({ profile }: Options<"profile">): Promise<MachineProfile> {
  if (profile !== undefined) return parsedProfile(profile);
  return fail("option-value", "a prediction needs the profile of a machine", {
    place: { kind: "option", text: "--profile" },
    found: "no --profile",
    expected: ["a JSON file that braid calibrate wrote", ...shippedProfiles()].join(", or "),
    help: `add ${usualProfile()}, or measure this machine with braid calibrate`,
  });
}

/**
 * Throws `option-value` if the profile says that it is for another back end. `isTraced`: `on` is that of a trace, not of
 * a flag.
 */
export function requireProfileOf(on: Target, { machine, on: measured }: MachineProfile, isTraced = false): void {
  if (measured === on) return;
  const [profiled, run] = on === "cuda" ? ["a CPU", "GPUs"] : ["GPUs", "the CPU"];
  const own = on === "cuda" ? "GPUs" : "this machine's CPU";
  const other =
    on === "cuda"
      ? `name a profile of GPUs: ${usualProfile()}`
      : "measure the CPU: braid calibrate --on cpu --out cpu.json";
  const place = { kind: "option", text: "--profile" } as const;
  if (isTraced) {
    fail("option-value", `the profile is of ${profiled}, and the trace is of a run on ${run}`, {
      place,
      found: machine,
      expected: `no --profile, or that of ${own}`,
      help: `leave --profile out: the trace has the times that were measured; for predicted ones beside them, ${other}`,
    });
  }
  fail("option-value", `the profile is of ${profiled}, and the program is for ${run}`, {
    place,
    found: `${machine}, with --on ${on}`,
    expected: `no --on, or a profile of ${own}`,
    help: `leave --on out, or ${other}`,
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
    return fail("file-unreadable", "the machine profile cannot be read", {
      place: { kind: "option", text: "--profile" },
      found: `${file}: ${systemReason(error)}`,
      expected: ["a JSON file that braid calibrate wrote", ...shippedProfiles()].join(", or "),
      help: suggestion(file, shippedProfiles(), "check the name, or measure this machine with braid calibrate"),
    });
  }
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
