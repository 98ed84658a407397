/**
 * What a run has to do with other processes: the part of a threaded group that a back end over several processes
 * provides. Streams that wait for another process are parked, so the run is held open until `run` releases it.
 */
import type { Diagnostic } from "../../../diagnostics/diagnostic.ts";
import type { RunProgress } from "../../../machine/execution.ts";
import type { SharedProgram } from "./messages.ts";
import type { Scheduler } from "./scheduler.ts";

export interface OutsideRun {
  /**
   * Called in every run, together with the workers. Resolves when the run is over in all processes, after `releaseRun`,
   * or when it was aborted: with the reason, if that lies in another process.
   */
  readonly run: (scheduler: Scheduler) => Promise<Diagnostic | null>;
}

export type Outside = (shared: SharedProgram, progress: RunProgress) => OutsideRun;
