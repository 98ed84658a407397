/** A failed call of a run whose peer has died: the peer is the reason. */
import { describe, expect, it } from "vitest";
import { DiagnosticError, type Diagnostic } from "@braid-compiler/braid";
import { causeOf } from "../../../src/backends/cuda/run/runner.ts";

const errorOf = (code: Diagnostic["code"]): DiagnosticError =>
  new DiagnosticError([{ code, message: "ncclSend failed" }]);

describe("the cause of a failed run", () => {
  it("is the end of a peer, of which the news comes a little later, with the failed call as a note", async () => {
    const end = errorOf("rank-failed");
    const signal: { reason: unknown } = { reason: undefined };
    setTimeout(() => (signal.reason = end), 20);
    const notes = ["error[gpu-call-failed]: ncclSend failed"];
    expect(await causeOf(errorOf("gpu-call-failed"), signal)).toEqual({ error: end, notes });
  });

  it("is the failed call if no peer has ended", async () => {
    const error = errorOf("gpu-call-failed");
    expect(await causeOf(error, { reason: undefined })).toEqual({ error, notes: [] });
  });

  it("is any other failure itself, at once", async () => {
    const error = errorOf("timed-out");
    const begin = performance.now();
    expect(await causeOf(error, { reason: undefined })).toEqual({ error, notes: [] });
    expect(performance.now() - begin).toBeLessThan(100);
  });
});
