/** From a loaded program and flags to the Compilation that `lower` prints, `verify` proves and `run` executes. */
import { type AnyCompilation, type CompileOptions, tryCompile, type Unlinked } from "../../compile/compile.ts";
import type { Lowered, ProgramSource } from "../../compile/lower-all.ts";
import { type NamesOf, type Options, scheduleNames } from "../../compile/options.ts";
import { pickOptions } from "../../compile/resolve-options.ts";
import type { Sizes } from "../../ir/sizes.ts";
import type { LoweringOptions } from "../../passes/options.ts";
import type { MachineProfile } from "../../simulate/machine-profile.ts";
import { choose } from "../../tune/choose/choose.ts";

/** What `lower`, `run` and `verify` all take. */
export type CompileFlags = Options<NamesOf<"lower"> & NamesOf<"run"> & NamesOf<"verify">>;

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
  lowering: Partial<LoweringOptions>,
  sizes: Sizes,
  profile: MachineProfile | null,
): CompiledFile {
  const { devices, on, streams } = flags;
  const schedule = pickOptions(scheduleNames, flags);
  const options: CompileOptions = { ...lowering, devices, on, streams, sizes, schedule, verify: "off" };
  if (profile === null) return { compiled: tryCompile(source, options), choice: null };
  const { compilation, reason } = choose(source, options, profile);
  return { compiled: compilation, choice: reason };
}
