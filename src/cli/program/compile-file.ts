/** Compiles a loaded program with flags. `lower` prints, `verify` proves and `run` executes the result. */
import {
  type AnyCompilation,
  type CompileOptions,
  targetOf,
  tryCompile,
  type Unlinked,
} from "../../compile/compile.ts";
import type { Lowered, ProgramSource } from "../../compile/lower-all.ts";
import { loweringNames, type NamesOf, type Options, recordingNames } from "../../compile/options.ts";
import { pickOptions } from "../../compile/options/resolve.ts";
import { rewritesOf } from "../../compile/options/schedule.ts";
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";
import type { Sizes } from "../../ir/sizes.ts";
import type { ScheduleChoice } from "../../tune/choose/schedule-choice.ts";
import type { MachineProfile } from "../../simulate/machine-profile.ts";
import type { CompiledLayers, FewerLayers } from "../../tune/regions/fewer-layers.ts";
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
  /** Null if the whole program was compiled; otherwise `compiled` is `more`. */
  readonly layers: CompiledLayers | null;
}

/**
 * Chooses a schedule if there is a `profile` and the user gave none. Throws what `compile` and `choose` throw. Lists
 * that do not link are not an error but a report. `fewer`: what is compiled where nothing is chosen, if it stands for all
 * layers.
 */
export async function compileFile(
  file: string,
  source: ProgramSource | Lowered,
  flags: CompileFlags,
  given: CompileGiven,
  sizes: Sizes,
  profile: MachineProfile | null,
  compiling: Pick<CompileOptions, "onProgress" | "oneReplica">,
  fewer: FewerLayers | null = null,
): Promise<CompiledFile> {
  const { devices, scalar: scalars } = flags;
  const on = targetOf(flags.on);
  const { schedule } = given;
  const lowered = pickOptions([...loweringNames, ...recordingNames], given);
  const model = memoryModelOf(file);
  const options: CompileOptions = {
    ...model,
    ...lowered,
    devices,
    on,
    sizes,
    scalars,
    ...rewritesOf(schedule),
    verify: "off",
  };
  const asked = { ...options, ...compiling };
  if (profile !== null) {
    // The choice takes time to load.
    const { chooseFor } = await import("../../tune/choose/choose.ts");
    const choice = chooseFor(schedule, source, asked, profile);
    if (choice !== null) return { compiled: choice.compilation, choice, options, layers: null };
  }
  const layers = fewer === null ? null : await compileFewer(fewer, asked);
  return { compiled: layers?.more.compilation ?? tryCompile(source, asked), choice: null, options, layers };
}

/** Null if they do not stand for all. Only a command that compiles few layers loads what does. */
async function compileFewer(fewer: FewerLayers, options: CompileOptions): Promise<CompiledLayers | null> {
  const { compileFewerLayers } = await import("../../tune/regions/fewer-layers.ts");
  try {
    return compileFewerLayers(fewer, options);
  } catch (error) {
    // What is wrong with the program, compiling it says.
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}
