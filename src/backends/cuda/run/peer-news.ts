/**
 * Which failure to report of a run in which a peer died. NCCL notices that too, perhaps before the rendezvous does, and
 * its call fails. The peer's end is then the reason, and the failed call a note.
 */
import { DiagnosticError, renderDiagnostic } from "../../../diagnostics/diagnostic.ts";
import type { EndOfWorld } from "../world.ts";
import { pause } from "./stuck/wait.ts";

interface Cause {
  readonly error: unknown;
  readonly notes: readonly string[];
}

/** Milliseconds for the news of a peer's end to arrive. */
const newsMilliseconds = 200;

export async function causeOf(error: unknown, signal: Pick<EndOfWorld, "reason">): Promise<Cause> {
  if (!(error instanceof DiagnosticError) || error.diagnostics[0]?.code !== "gpu-call-failed") {
    return { error, notes: [] };
  }
  const deadline = performance.now() + newsMilliseconds;
  while (signal.reason === undefined && performance.now() < deadline) await pause(1);
  if (signal.reason === undefined) return { error, notes: [] };
  return { error: signal.reason, notes: error.diagnostics.map(renderDiagnostic) };
}
