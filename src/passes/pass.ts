/**
 * A pass is a value: a name, the stages it leads from and to, and a pure function between programs. It returns
 * the same object when it has nothing to change. It neither validates, prints nor times: the pipeline does.
 *
 * Stages, in order: `fusion` (the user's, then with reshardings apart), `segmented` (a host program of top-level statements), `looped`
 * (Stream axes are loops), `communicating` (resharding ops are communications).
 */
import type { FusionData } from "../ir/fusion-data.ts";
import type { HostProgram } from "../host/nodes.ts";
import type { LoweringOptions } from "./options.ts";

export interface StagePrograms {
  readonly fusion: FusionData;
  readonly segmented: HostProgram;
  readonly looped: HostProgram;
  readonly communicating: HostProgram;
}

export type Stage = keyof StagePrograms;

export interface PassContext {
  /** The device this host program is for. */
  readonly rank: number;
  readonly options: LoweringOptions;
}

export interface Pass<From extends Stage, To extends Stage> {
  readonly name: string;
  readonly from: From;
  readonly to: To;
  readonly run: (program: StagePrograms[From], context: PassContext) => StagePrograms[To];
}
