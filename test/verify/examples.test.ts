/**
 * An example of every finding and note; docs/findings.md shows most. test/fixtures/findings has a
 * dump with the output of `braid verify`, or command lists with their findings. `npx vitest run test/verify/examples
 * -u` regenerates the texts, `npm run docs` the pages.
 */
import { readdirSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { diagnosticCodes, type Finding, renderDiagnostic, verify } from "@braid-compiler/braid";
import { printProgram } from "../../src/commands/print-program.ts";
import { keysOf } from "../../src/support/invariant.ts";
import { cli } from "../cli/captured-cli.ts";
import { compareProgram } from "./mutants/compare.ts";
import { withoutTimes } from "../support/console-blocks.ts";
import { exampleLists } from "./example-lists.ts";

const folder = path.resolve(import.meta.dirname, "../fixtures/findings");
const dumps = readdirSync(folder).filter((name) => name.endsWith(".hir"));
const warnings: ReadonlySet<string> = new Set(["transfer-unclear"]);
const notes: ReadonlySet<string> = new Set(["redundant-synchronization", "iterations-serialized", "buffer-leaked"]);

/** PyTorch's allocator, the default for dumps, frees everything when a run ends. */
const flags: Readonly<Record<string, readonly string[]>> = { "buffer-leaked": ["--as", "braid"] };

/** Mistakes of a single command, or of lists that are not linked. All other findings name two commands. */
const ofOneCommand: ReadonlySet<string> = new Set([
  "unwritten-read",
  "signal-unbalanced",
  "transfer-mismatch",
  "transfer-unclear",
  "outside-buffer",
  "operands-overlap",
  "redundant-synchronization",
]);

/** The findings of a code name as many commands as they are about. */
function expectPlaces(code: string, findings: readonly Pick<Finding, "code" | "commands">[]): void {
  const own = findings.filter((finding) => finding.code === code);
  expect(own.length).toBeGreaterThan(0);
  for (const { commands } of own) expect(commands.length >= 2).toBe(!ofOneCommand.has(code));
}

it("every code of the verifier has one", () => {
  const all = keysOf(diagnosticCodes);
  const own = all.slice(all.indexOf("data-race"), all.indexOf("buffer-leaked") + 1);
  const shown = [...dumps.map((name) => name.replace(".hir", "")), ...Object.keys(exampleLists)];
  expect(shown.toSorted()).toEqual([...own, "slot-overrun", "transfer-mismatch", "transfer-unclear"].toSorted());
});

describe.each(dumps)("%s", (name) => {
  const code = name.replace(".hir", "");

  it(`is ${code}`, async () => {
    const file = path.join(folder, name);
    const { status, out, err } = await cli("verify", file, ...(flags[code] ?? []));
    const severity = notes.has(code) ? "note" : warnings.has(code) ? "warning" : "error";
    expect([status, err]).toEqual([severity === "error" ? 1 : 0, ""]);
    expect(out.startsWith(`${severity}[${code}]: `)).toBe(true);
    const text = withoutTimes(out.replaceAll(file, name)).replace(/; +N ms$/m, "");
    await expect(text).toMatchFileSnapshot(path.join(folder, `${code}.txt`));
    const document = JSON.parse((await cli("verify", file, "--json", ...(flags[code] ?? []))).out) as {
      findings: Finding[];
    };
    expectPlaces(code, document.findings);
  });
});

describe.each(Object.entries(exampleLists))("%s", (code, build) => {
  it("is found in lists", async () => {
    const program = build();
    const { ok, findings } = verify(program);
    expect(ok).toBe(false);
    expectPlaces(code, findings);
    const text = [printProgram(program), ...findings.map((finding) => `${renderDiagnostic(finding)}\n`)].join("\n");
    await expect(text).toMatchFileSnapshot(path.join(folder, `${code}.txt`));
  });
});

// The judge looks at bytes of memory, of which a view beyond its buffer has some, too.
const unknownToTheJudge = ["outside-buffer"];

it("the judge says so of the lists", () => {
  const outcomes = Object.entries(exampleLists).map(([code, build]) => [code, compareProgram(build()).outcome]);
  expect(outcomes.filter(([, outcome]) => outcome !== "wrong").map(([code]) => code)).toEqual(unknownToTheJudge);
});
