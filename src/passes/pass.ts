/**
 * A pass is a value: a name, the stages before and after it, and a pure function from program to program. It returns
 * the same object if it changes nothing. The pipeline validates, observes and times it.
 */
import type { FusionData } from "../ir/fusion-data.ts";
import type { RankRules } from "../host/alike/rank-rules.ts";
import type { HostProgram } from "../host/nodes.ts";
import type { LoweringOptions } from "./options.ts";

/** The stages in order. validators.ts lists the guarantees of each. */
export interface StagePrograms {
  /** A Fusion as the user built it. */
  readonly fusion: FusionData;
  /** A Fusion whose meshes and shardings lowering accepts. */
  readonly checked: FusionData;
  /** A host program of top-level statements. */
  readonly segmented: HostProgram;
  /** Stream axes are loops. */
  readonly looped: HostProgram;
  /** Resharding ops are communications. */
  readonly communicating: HostProgram;
}

export type Stage = keyof StagePrograms;

export interface PassContext {
  /** The device that the host program is for. */
  readonly rank: number;
  /** If it is for several ranks: of all of them. `rank` is the first. */
  readonly rules?: RankRules;
  readonly options: LoweringOptions;
}

export interface Pass<From extends Stage, To extends Stage> {
  readonly name: string;
  readonly from: From;
  readonly to: To;
  readonly run: (program: StagePrograms[From], context: PassContext) => StagePrograms[To];
}
