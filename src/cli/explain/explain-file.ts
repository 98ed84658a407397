/** Explains a program file or a dump with flags. Nothing is printed here. */
import { loweringNames, type NamesOf, type Options, recordingNames } from "../../compile/options.ts";
import { pickOptions } from "../../compile/options/resolve.ts";
import { rewritesOf } from "../../compile/options/schedule.ts";
import { compileToExplain, explainCompiled, type Explanation, judgeOfTimes } from "../../explain/explain.ts";
import { changed } from "../../explain/what-if.ts";
import { annotationWarnings } from "../../compile/annotation-warnings.ts";
import { isFusionSource } from "../../compile/lower-all.ts";
import type { Diagnostic } from "../../diagnostics/diagnostic.ts";
import type { Parameters } from "../../host/program-file.ts";
import type { Sizes } from "../../ir/sizes.ts";
import type { MachineProfile } from "../../simulate/machine-profile.ts";
import { withFewerLayers } from "../../tune/regions/fewer-layers.ts";
import type { CompileGiven } from "../../compile/options/flags-text.ts";
import { programOptions } from "../flags/compared-options.ts";
import { targetOf } from "../../compile/compile.ts";
import { profileToPredictWith, requireProfileOf } from "../flags/profile.ts";
import type { ApartBuilding } from "../program/apart/build-apart.ts";
import { chooseAttention } from "../../compile/choose-attention.ts";
import { buildProgram, printWarnings, warnOfAllLayers } from "../program/build-program.ts";
import { optimizeLater } from "../program/optimize-later.ts";
import { memoryModelOf, requireNotLowered } from "../program/dump-file.ts";
import { inputSizes } from "../../compile/program/input-sizes.ts";
import { modelSizes } from "../program/program-of-model.ts";
import type { ReadTrace } from "../../trace/chrome/read-trace.ts";
import { measuredRun, scheduleOf } from "./measured-trace.ts";
import type { ProgressStep } from "../terminal/progress.ts";

export type ExplainFlags = Options<NamesOf<"explain">>;

export interface ExplainResult {
  readonly file: string;
  readonly flags: Pick<ExplainFlags, "devices" | "devicesPerHost" | "on" | "whatIf" | "all" | "timeline">;
  readonly params: Parameters;
  readonly sizes: Sizes;
  /** Null for a measured run without --profile. */
  readonly profile: MachineProfile | null;
  readonly explanation: Explanation;
  /** Which attention is not one kernel, and why. */
  readonly notes: readonly Diagnostic[];
  /** With --print all: predictions with other values of the parameters that seem to be numbers of chunks. */
  readonly chunks: readonly ChunkChange[];
  /** Milliseconds that the explanation took. */
  readonly milliseconds: number;
}

export interface ExplainSetting {
  /** The trace of `--trace`; null to explain the predicted run. */
  readonly measured: ReadTrace | null;
  /** Whether predicted runs are launches of a graph. */
  readonly graph: boolean;
  readonly building: ApartBuilding | null;
  readonly step: ProgressStep;
}

/** The same program with another value of a parameter. */
export interface ChunkChange {
  readonly name: string;
  readonly value: number;
  /** Predicted; null if it is refused. */
  readonly milliseconds: number | null;
  readonly refused: string | null;
}

/** Of more ranks, a timeline and a report draw one replica. */
const mostDrawn = 64;

/** `flags.whatIf` changes the machine, not the number of devices. */
export async function explainFile(
  file: string,
  flags: ExplainFlags,
  given: CompileGiven,
  { measured, graph, building, step }: ExplainSetting,
): Promise<ExplainResult> {
  const known = measured !== null && flags.profile === undefined ? null : await profileToPredictWith(flags);
  const profile = known === null ? null : changed(known, flags.whatIf);
  if (profile !== null) requireProfileOf(targetOf(flags.on), profile, measured !== null);
  const lowering = pickOptions(loweringNames, given);
  step(`loading ${file}`);
  requireNotLowered(file, lowering);
  // Where all of the program is to be seen, all of it is compiled.
  const isWhole = measured !== null || flags.all || flags.timeline || flags.report !== undefined;
  const findLayers = isWhole ? undefined : withFewerLayers;
  const built = await buildProgram(file, { ...flags, warn: false }, lowering, building, findLayers);
  const { source, signature, layers, model, params } = built;
  optimizeLater();
  const sizes = inputSizes(signature, modelSizes(model, flags.sizes));
  step(`explaining on ${flags.devices} devices`);
  const { devices, scalar: scalars } = flags;
  const on = targetOf(flags.on);
  const schedule = given.schedule ?? (measured === null ? undefined : scheduleOf(measured));
  const compiling = { ...memoryModelOf(file), ...pickOptions([...loweringNames, ...recordingNames], given) };
  const start = performance.now();
  const asked = schedule === undefined ? {} : { schedule };
  const oneReplica = !isWhole || (measured === null && devices > mostDrawn);
  const options = { ...compiling, devices, on, sizes, scalars, oneReplica, ...rewritesOf(schedule) };
  const compiled = compileToExplain(source, { ...options, ...asked, onProgress: step }, profile, layers);
  if (compiled.layers === null) warnOfAllLayers(built, lowering, building);
  const run = measured === null ? null : measuredRun(compiled.compilation.program, measured, programOptions(flags));
  const explanation = explainCompiled(source, compiled, {
    ...options,
    onProgress: step,
    graph,
    profile,
    measured: run,
    all: flags.all,
  });
  const { warnings = [] } = built;
  if (building !== null && warnings.length > 0) {
    const judge =
      profile === null
        ? null
        : judgeOfTimes(source, compiled, { ...options, graph, profile, measured: null }, explanation);
    // What gains is decided by the same times as the changes that explain advises.
    const judged =
      judge === null || !isFusionSource(source)
        ? warnings
        : [...warnings.filter(({ code }) => code === "mesh-missing"), ...annotationWarnings(source, lowering, judge)];
    printWarnings(judged, building);
  }
  const { notes } = chooseAttention(source, { ...lowering, on }, undefined);
  const milliseconds = performance.now() - start;
  return { file, flags, params, sizes, profile, explanation, notes, chunks: [], milliseconds };
}
