/** Compiles a loaded program with flags. `lower` prints, `verify` proves and `run` executes the result. */
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

/** The options that `lower`, `run` and `verify` have in common. */
export type CompileFlags = Options<NamesOf<"lower"> & NamesOf<"run"> & NamesOf<"verify">>;

/** The options that make the Program of a file. */
export const compileNames: readonly CompileName[] = [...loweringNames, "streams", ...scheduleNames];
type CompileName = LoweringName | "streams" | ScheduleName;

/** The options that the command line gives, without defaults. They restrict the choice of a schedule. */
export type CompileGiven = GivenOptions<CompileName>;

export interface CompiledFile {
  /** Not verified yet. */
  readonly compiled: AnyCompilation | Unlinked;
  /** The chosen schedule and the reason; null if none was to be chosen. */
  readonly choice: string | null;
}

/**
 * With a `profile`, the schedule is chosen. Throws what `compile` and `choose` throw, except for lists that do not
 * link: these have a report.
 */
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
