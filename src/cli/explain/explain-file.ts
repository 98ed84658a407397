/** Explains a program file or a dump with flags. Nothing is printed here. */
import { loweringNames, type NamesOf, type Options, recordingNames, scheduleNames } from "../../compile/options.ts";
import { pickOptions } from "../../compile/options/resolve.ts";
import { explain, type Explanation } from "../../explain/explain.ts";
import { changed } from "../../explain/what-if.ts";
import type { Parameters } from "../../host/program-file.ts";
import type { Sizes } from "../../ir/sizes.ts";
import type { MachineProfile } from "../../simulate/machine-profile.ts";
import type { CompileGiven } from "../flags/compile-names.ts";
import { profileToPredictWith } from "../flags/profile.ts";
import type { Building } from "../program/apart/build-apart.ts";
import { buildProgram } from "../program/build-program.ts";
import { memoryModelOf, requireNotLowered } from "../program/dump-file.ts";
import { inputSizes } from "../program/input-sizes.ts";
import type { Step } from "../terminal/progress.ts";

export type ExplainFlags = Options<NamesOf<"explain">>;

export interface ExplainResult {
  readonly file: string;
  readonly flags: ExplainFlags;
  readonly params: Parameters;
  readonly sizes: Sizes;
  readonly profile: MachineProfile;
  readonly explanation: Explanation;
  /** Milliseconds that the explanation took. */
  readonly milliseconds: number;
}

/** `flags.whatIf` changes the machine, not the number of devices. */
export async function explainFile(
  file: string,
  flags: ExplainFlags,
  given: CompileGiven,
  { building, step }: { readonly building: Building | null; readonly step: Step },
): Promise<ExplainResult> {
  const { profile } = changed(await profileToPredictWith(flags), flags.whatIf);
  const lowering = pickOptions(loweringNames, given);
  step(`loading ${file}`);
  requireNotLowered(file, lowering);
  const { source, signature, params } = await buildProgram(file, flags, lowering, building);
  const sizes = inputSizes(signature, flags.sizes);
  step(`explaining on ${flags.devices} devices`);
  const { devices, on, scalar: scalars, scheduleChoice } = flags;
  const schedule = pickOptions(scheduleNames, given);
  const compiling = { ...memoryModelOf(file), ...pickOptions([...loweringNames, ...recordingNames], given) };
  const start = performance.now();
  const explanation = explain(source, { ...compiling, devices, on, sizes, scalars, schedule, scheduleChoice }, profile);
  return { file, flags, params, sizes, profile, explanation, milliseconds: performance.now() - start };
}
