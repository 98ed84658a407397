/** Every diagnostic code has an exit status: 3 for failed runs, 1 for failed checks, 2 for the user's mistakes. */
import { describe, expect, it } from "vitest";
import { exitStatus, statusOf } from "../../src/cli/exit-status.ts";
import { type DiagnosticCode, diagnosticCodes } from "../../src/diagnostics/codes.ts";

const runCodes: readonly DiagnosticCode[] = [
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
];

const codes = Object.keys(diagnosticCodes) as DiagnosticCode[];

describe("statusOf", () => {
  it.each(codes)("%s", (code) => {
    const expected = runCodes.includes(code)
      ? exitStatus.runFailed
      : code === "check-failed" || code === "not-checked"
        ? exitStatus.checkFailed
        : exitStatus.badInput;
    expect(statusOf([{ code, message: "" }])).toBe(expected);
  });

  it("a failed run outweighs a failed check", () => {
    const both = ["check-failed", "timed-out"] as const;
    expect(statusOf(both.map((code) => ({ code, message: "" })))).toBe(exitStatus.runFailed);
  });
});
