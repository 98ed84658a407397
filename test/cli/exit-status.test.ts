/** Every diagnostic code has its exit status: what a run can die of is 3, a failed check 1, all else the user's 2. */
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
      : code === "check-failed"
        ? exitStatus.checkFailed
        : exitStatus.badInput;
    expect(statusOf([{ code, message: "" }])).toBe(expected);
  });

  it("a failed run outweighs a failed check", () => {
    const both = ["check-failed", "timed-out"] as const;
    expect(statusOf(both.map((code) => ({ code, message: "" })))).toBe(exitStatus.runFailed);
  });
});
