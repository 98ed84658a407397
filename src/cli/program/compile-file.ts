/** Compiles a loaded program with flags. `lower` prints, `verify` proves and `run` executes the result. */
import {
  type AnyCompilation,
  type CompileOptions,
  targetOf,
  tryCompile,
  type Unlinked,
} from "../../compile/compile.ts";
import type { Lowered, ProgramSource } from "../../compile/lower-all.ts";
import { loweringNames, type NamesOf, type Options, recordingNames, scheduleNames } from "../../compile/options.ts";
import { pickOptions } from "../../compile/options/resolve.ts";
import type { OnProgress } from "../../support/progress.ts";
import type { Sizes } from "../../ir/sizes.ts";
import type { ScheduleChoice } from "../../tune/choose/schedule-choice.ts";
import type { MachineProfile } from "../../simulate/machine-profile.ts";
import type { CompileGiven } from "../../compile/options/flags-text.ts";
import { memoryModelOf } from "./dump-file.ts";

/** The options that `lower`, `run` and `verify` have in common. */
export type CompileFlags = Options<NamesOf<"lower"> & NamesOf<"run"> & NamesOf<"verify">>;

export interface CompiledFile {
  /** Not verified yet. */
  readonly compiled: AnyCompilation | Unlinked;
  /** The chosen schedule; null if none was to be chosen. */
  readonly choice: ScheduleChoice<AnyCompilation> | null;
  readonly options: CompileOptions;
}

/**
 * Chooses a schedule if there is a `profile`. Throws what `compile` and `choose` throw. Lists that do not link are not
 * an error but a report.
 */
export async function compileFile(
  file: string,
  source: ProgramSource | Lowered,
  flags: CompileFlags,
  given: CompileGiven,
  sizes: Sizes,
  profile: MachineProfile | null,
  onProgress: OnProgress,
): Promise<CompiledFile> {
  const { devices, scalar: scalars } = flags;
  const on = targetOf(flags.on);
  const schedule = pickOptions(scheduleNames, given);
  const lowered = pickOptions([...loweringNames, ...recordingNames], given);
  const model = memoryModelOf(file);
  const options: CompileOptions = { ...model, ...lowered, devices, on, sizes, scalars, schedule, verify: "off" };
  if (profile === null || flags.scheduleChoice === "given") {
    return { compiled: tryCompile(source, { ...options, onProgress }), choice: null, options };
  }
  const { choose } = await import("../../tune/choose/choose.ts");
  const choice = choose(source, { ...options, onProgress }, profile);
  return { compiled: choice.compilation, choice, options };
}
