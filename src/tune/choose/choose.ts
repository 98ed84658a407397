/**
 * `schedule: "auto"`: compiles every candidate, simulates it on the machine of a measured profile, and takes the
 * fastest. The regions of a Fusion are chosen apart. The choice depends on the program, its sizes and the profile alone,
 * so that every rank makes the same one.
 */
import { type AnyCompilation, verified } from "../../compile/compile.ts";
import { isFusionSource, type Lowered, type ProgramSource } from "../../compile/lower-all.ts";
import type { Schedule } from "../../compile/options/schedule.ts";
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";
import type { MachineProfile } from "../../simulate/machine-profile.ts";
import { chooseByRegion } from "./choose-by-region.ts";
import { type ChooseOptions, considerSchedules } from "./consider.ts";
import { decide } from "./decide.ts";
import type { ScheduleChoice } from "./schedule-choice.ts";

/**
 * The fastest schedule of a program by simulation, compiled. Throws `bad-option` if the given options leave no
 * candidate or name a schedule, and the serial form's error if no candidate can be compiled.
 */
export function choose(
  source: ProgramSource | Lowered,
  options: ChooseOptions & { readonly verify?: "on" | "full" },
  profile: MachineProfile,
): ScheduleChoice;
export function choose(
  source: ProgramSource | Lowered,
  options: ChooseOptions,
  profile: MachineProfile,
): ScheduleChoice<AnyCompilation>;
export function choose(
  source: ProgramSource | Lowered,
  options: ChooseOptions,
  profile: MachineProfile,
): ScheduleChoice<AnyCompilation> {
  const choice = chooseByRegion(source, options, profile) ?? chooseWhole(source, options, profile);
  const { verify = "on", notes = true, onProgress } = options;
  if (verify === "off") return choice;
  return {
    ...choice,
    compilation: verified(choice.compilation, {
      notes,
      full: verify === "full",
      ...(onProgress === undefined ? {} : { onProgress }),
    }),
  };
}

/**
 * The choice under a `schedule`; null where there is nothing to choose: without a profile, for a schedule as written and
 * for rewrites; where none is given also for host programs, which are run as they are written, with `streams`, and where
 * nothing can be chosen with the given options.
 */
export function chooseFor(
  schedule: Schedule | undefined,
  source: ProgramSource | Lowered,
  options: ChooseOptions,
  profile: MachineProfile | null,
): ScheduleChoice<AnyCompilation> | null {
  if (profile === null) return null;
  if (schedule === "auto") return choose(source, options, profile);
  if (schedule !== undefined || options.streams !== undefined || !isFusionSource(source)) return null;
  try {
    return choose(source, options, profile);
  } catch (error) {
    // What is wrong with the program, compiling it says.
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}

function chooseWhole(
  source: ProgramSource | Lowered,
  options: ChooseOptions,
  profile: MachineProfile,
): ScheduleChoice<AnyCompilation> {
  const { candidates, leftOut } = considerSchedules(source, options, profile);
  const { picked, considered, reason } = decide(candidates, leftOut);
  const { candidate: chosen, milliseconds, margin, compiled } = picked;
  return { compilation: compiled(), chosen, milliseconds, margin, considered, leftOut, regions: [], reason };
}
