/**
 * Bugs of real projects: the verifier names the two commands that are at fault, the judge agrees, and both let the
 * mended Program pass.
 */
import { describe, expect, it } from "vitest";
import { DiagnosticError, link, verify } from "@braid-compiler/braid";
import { compareProgram } from "../mutants/compare.ts";
import type { BugPlace } from "./bug.ts";
import { historicalBugs } from "./bugs.ts";
import { oneMoreCollective } from "./one-more-collective.ts";

describe.each(historicalBugs)("$name", ({ wrong, right, finding: expected }) => {
  it("is found, with the places of both commands", () => {
    const { ok, findings } = verify(wrong);
    expect(ok).toBe(false);
    const shown = findings.map(({ code, commands }) => ({
      code,
      places: commands.map(({ rank, streamName, kind, statement, run }, i): BugPlace => {
        const begin = expected.places[i]?.statement ?? statement;
        return { rank, streamName, kind, statement: statement.startsWith(begin) ? begin : statement, run };
      }),
    }));
    expect(shown).toContainEqual(expected);
    expect(compareProgram(wrong)).toEqual({ outcome: "wrong", disagreement: null });
  });

  it("is not found where it is mended", () => {
    const { ok, findings } = verify(right);
    expect(findings).toEqual([]);
    expect(ok).toBe(true);
    expect(compareProgram(right)).toEqual({ outcome: "right", disagreement: null });
  });
});

// The check that PyTorch has for this hung in the same way.
describe("pytorch #182281: one rank does a collective more than its peer", () => {
  it("is refused by link, with both ranks", () => {
    expect(() => link(oneMoreCollective(true))).toThrow(DiagnosticError);
    expect(() => link(oneMoreCollective(true))).toThrow(/transfer-mismatch[^]*rank 1/);
    expect(verify(link(oneMoreCollective(false))).findings).toEqual([]);
  });
});
