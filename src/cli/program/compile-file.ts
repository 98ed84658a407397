/** From a loaded program and flags to the Compilation that `lower` prints, `verify` proves and `run` executes. */
import { type AnyCompilation, type CompileOptions, tryCompile, type Unlinked } from "../../compile/compile.ts";
import type { Lowered, ProgramSource } from "../../compile/lower-all.ts";
import {
  type GivenOptions,
  type LoweringName,
  loweringNames,
  type NamesOf,
  type Options,
  type ScheduleName,
  scheduleNames,
} from "../../compile/options.ts";
import { pickOptions } from "../../compile/options/resolve.ts";
import type { Sizes } from "../../ir/sizes.ts";
import type { MachineProfile } from "../../simulate/machine-profile.ts";
import { choose } from "../../tune/choose/choose.ts";

/** What `lower`, `run` and `verify` all take. */
export type CompileFlags = Options<NamesOf<"lower"> & NamesOf<"run"> & NamesOf<"verify">>;

/** The options that make the Program of a file. */
export const compileNames: readonly CompileName[] = [...loweringNames, "streams", ...scheduleNames];
type CompileName = LoweringName | "streams" | ScheduleName;

/** What the command line says of them. The choice of a schedule has to tell this from defaults. */
export type CompileGiven = GivenOptions<CompileName>;

export interface CompiledFile {
  /** Not verified yet. */
  readonly compiled: AnyCompilation | Unlinked;
  /** Which schedule was chosen, and why; null where none was to be. */
  readonly choice: string | null;
}

/** `profile`: choose a schedule with it. Throws what `compile` and `choose` throw, but where lists do not link, that is a report. */
export function compileFile(
  source: ProgramSource | Lowered,
  flags: CompileFlags,
  given: CompileGiven,
  sizes: Sizes,
  profile: MachineProfile | null,
): CompiledFile {
  const { devices, on } = flags;
  const schedule = pickOptions(scheduleNames, given);
  const lowered = pickOptions([...loweringNames, "streams"], given);
  const options: CompileOptions = { ...lowered, devices, on, sizes, schedule, verify: "off" };
  if (profile === null) return { compiled: tryCompile(source, options), choice: null };
  const { compilation, reason } = choose(source, options, profile);
  return { compiled: compilation, choice: reason };
}
