/**
 * The exit statuses of `braid`: a contract with scripts. Every diagnostic code maps to one of them.
 */
import type { DiagnosticCode } from "../diagnostics/codes.ts";
import type { Diagnostic } from "../diagnostics/diagnostic.ts";

export const exitStatus = {
  /** Success. */
  ok: 0,
  /** A check failed or could not compare anything, or the verifier found something. */
  checkFailed: 1,
  /** The arguments or the input were wrong. */
  badInput: 2,
  /** The run itself failed: a stuck program, a timeout, a dead worker, or a back end that this machine lacks. */
  runFailed: 3,
  /** The user ended the run by a signal: 128 plus its number, as shells say it. */
  hungUp: 129,
  interrupted: 130,
  terminated: 143,
} as const;

export type ExitStatus = (typeof exitStatus)[keyof typeof exitStatus];

/** Codes of failed runs. A code that is in neither list means bad input. */
const runFailures: ReadonlySet<DiagnosticCode> = new Set([
  "stuck",
  "slot-overrun",
  "timed-out",
  "command-threw",
  "worker-died",
  "rank-failed",
  "rendezvous-failed",
  "memory-limit",
  "gpu-call-failed",
  "gpu-memory",
  "gpu-unsupported",
  "backend-unavailable",
]);
const checkFailures: ReadonlySet<DiagnosticCode> = new Set(["check-failed", "not-checked"]);

export function statusOf(diagnostics: readonly Diagnostic[]): ExitStatus {
  // Only findings of the verifier have a severity. Some have codes of failed runs, which they prevent.
  if (diagnostics.some(({ severity }) => severity !== undefined)) return exitStatus.checkFailed;
  const some = (codes: ReadonlySet<DiagnosticCode>): boolean => diagnostics.some(({ code }) => codes.has(code));
  if (some(runFailures)) return exitStatus.runFailed;
  return some(checkFailures) ? exitStatus.checkFailed : exitStatus.badInput;
}
