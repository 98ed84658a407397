/**
 * `lower` makes one rank's host program from a Fusion; `runPass` runs a single pass on a host program, hand-built
 * or lowered.
 */
import type { FusionData } from "../ir/fusion-data.ts";
import type { HostProgram } from "../host/nodes.ts";
import { type LoweringOptions, resolveLoweringOptions } from "./options.ts";
import type { Pass, Stage, StagePrograms } from "./pass.ts";
import { type PassObserver, runPipeline, validate } from "./pipeline.ts";
import { requireWholeNumber } from "../diagnostics/whole-number.ts";

export interface LowerOptions extends Partial<LoweringOptions> {
  /** The device whose host program is made; 0 if not given. */
  readonly rank?: number;
  /** Told after every pass. */
  readonly onPass?: PassObserver;
}

/** Something that has a Fusion's data: a `Fusion`. */
export interface HasFusionData {
  data(): FusionData;
}

/** The host program of one rank. Throws a DiagnosticError for a Fusion or an option that cannot be lowered. */
export function lower(fusion: HasFusionData, { rank = 0, onPass, ...options }: LowerOptions = {}): HostProgram {
  requireWholeNumber("lower(fusion, { rank })", rank, 0);
  return runPipeline(fusion.data(), { rank, options: resolveLoweringOptions(options) }, onPass);
}

/** A pass that runs on host programs. */
export type HostPass =
  Pass<"segmented", "looped"> | Pass<"looped", "communicating"> | Pass<"communicating", "communicating">;

/** One pass on one host program; its result is validated for the stage it leads to. */
export function runPass(
  pass: HostPass,
  program: HostProgram,
  { rank = 0, ...options }: Omit<LowerOptions, "onPass"> = {},
): HostProgram {
  requireWholeNumber("runPass(pass, program, { rank })", rank, 0);
  const result = pass.run(program, { rank, options: resolveLoweringOptions(options) });
  if (result !== program)
    validate<Stage & ("looped" | "communicating")>(pass.to, result satisfies StagePrograms["looped"]);
  return result;
}
