/** Groups of committed runs whose errors have causes in common, for cross-validation: one file, or one primitive. */
import type { PredictedRun } from "./predicted-runs.ts";

export function groupOf({ source }: Pick<PredictedRun, "source">): string {
  return source.replace(/^choice-/, "");
}

/**
 * Runs that the model does not cover: GEMMs in float, which no profile has measured, and eager runs of the library's
 * transfers, whose issue costs the host 20 to 70 microseconds each.
 */
export function isCovered({ text, graph }: PredictedRun): boolean {
  return !text.includes("of float 4096") && (graph || !text.endsWith(": nccl"));
}
