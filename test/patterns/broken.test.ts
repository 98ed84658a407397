/**
 * One changed line in a pattern of the field, and the verifier names it: its tensor, its ranks and its statements. The
 * program as lowered verifies. repaired.long.test.ts adds the line that is missing.
 */
import { expect, it } from "vitest";
import { type Diagnostic, DiagnosticError, type HostProgram, renderDiagnostic } from "@braid-compiler/braid";
import { outputsOf } from "../verify/mutants/replay.ts";
import { brokenHosts, compiled, hostsOf } from "./broken-hosts.ts";
import { beyondCapacity, brokenPatterns } from "./broken-patterns.ts";

/** By example and sizes, which faults share. */
const verified = new Map<string, readonly HostProgram[]>();

it.each(brokenPatterns)("$example: $fault", async (pattern) => {
  const key = `${pattern.example} ${JSON.stringify(pattern.params)}`;
  const hosts = verified.get(key) ?? (await hostsOf(pattern));
  if (!verified.has(key)) expect(compiled(hosts, pattern.devices).report.findings.filter(isError)).toEqual([]);
  verified.set(key, hosts);
  const [finding] = findingsOf(() => compiled(brokenHosts(pattern, hosts), pattern.devices).report.findings);
  expect(finding?.code).toBe(pattern.code);
  const text = finding === undefined ? "" : renderDiagnostic(finding);
  for (const words of pattern.says) expect(text).toContain(words);
});

it("moe-experts: more rows than the capacity end the run", async () => {
  const hosts = await hostsOf(beyondCapacity);
  const [right, wrong] = [hosts, brokenHosts(beyondCapacity, hosts)].map((each) => compiled(each, 2).program);
  if (right === undefined || wrong === undefined) throw new Error("not compiled");
  expect(await outputsOf(right, null)).not.toContain("stopped");
  expect(await outputsOf(wrong, null)).toBe("stopped: group-ends-invalid");
});

function isError({ severity }: Diagnostic): boolean {
  return severity === "error";
}

/** Those of `verify`, or of `link`, which refuses ranks that do not fit. */
function findingsOf(verified: () => readonly Diagnostic[]): readonly Diagnostic[] {
  try {
    return verified().filter(isError);
  } catch (error) {
    if (error instanceof DiagnosticError) return error.diagnostics;
    throw error;
  }
}
