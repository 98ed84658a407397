/** The data of the report of a verified program, and of one with findings. */
import { describe, expect, it } from "vitest";
import { compile, parse } from "@braid-compiler/braid";
import { readFileSync } from "node:fs";
import { parseContainers } from "../../src/host/parse/parse.ts";
import { dumpLines } from "../../src/host/print/statement-lines.ts";
import { verifyReport } from "../../src/report/build/verify-report.ts";
import type { ReportData } from "../../src/report/data/report-data.ts";
import { at } from "../../src/support/invariant.ts";
import { decodeColumns, encodeColumns } from "../../src/support/columns.ts";

function reportOf(name: string, containers = 1, isDump = false): ReportData & { readonly commands: number } {
  const text = readFileSync(new URL(`../fixtures/findings/${name}.hir`, import.meta.url), "utf8");
  const { hosts, reported, report } = compile(
    containers === 1 ? parse(text) : Array.from({ length: containers }, (_, container) => parse(text, { container })),
    { devices: containers },
  );
  const data = verifyReport({
    title: name,
    hosts,
    dump: isDump ? { text, lineOf: dumpLines(parseContainers(text)) } : null,
    program: reported,
    report,
    repair: report.ok ? [] : ["add `Synchronize Stream ( 0 )`"],
    replay: `braid run ${name}.hir --check --interleaving order.txt`,
  });
  return { ...data, commands: reported.ranks.reduce((sum, { commands }) => sum + commands.length, 0) };
}

/** `2 launch`: the commands of a view in the order in which they start, those of one step in the order of tracks. */
function startsOf(data: ReportData, view: number): ReadonlyMap<number, number> {
  const { slices } = at(at(data.views, view).timeline.runs, 0);
  const { works } = at(data.views, view).timeline;
  return new Map(
    [...slices.command.entries()]
      .filter(([slice]) => at(works, at(slices.work, slice)).kind !== "wait")
      .map(([slice, command]) => [command, at(slices.start, slice)]),
  );
}

describe("the report of a race", () => {
  const data = reportOf("data-race");

  it("shows the finding, and its counterexample in which the second command comes first", () => {
    const finding = at(data.findings, 0);
    expect(finding).toMatchObject({ severity: "error", code: "data-race", link: { kind: "commands", view: 1 } });
    expect(finding.replay?.command).toContain("--interleaving order.txt");
    const [first, second] = finding.link.kind === "commands" ? finding.link.commands : [];
    const starts = startsOf(data, 1);
    expect(starts.get(second?.command ?? -1)).toBeLessThan(starts.get(first?.command ?? -1) ?? -1);
    // Every command runs.
    expect(starts.size).toBe(data.commands);
  });

  it("draws the order that is missing", () => {
    const { timeline } = at(data.views, 0);
    const { missing, slices } = at(timeline.runs, 0);
    expect(missing.length).toBe(1);
    const [from, to] = at(missing, 0);
    expect([from, to].map((slice) => at(timeline.works, at(slices.work, slice)).kind)).toEqual(["kernel", "kernel"]);
  });

  it("shows a dump as it is, by the lines that the findings name", () => {
    const { hosts, views } = reportOf("data-race", 1, true);
    const lines = at(views, 0).timeline.statements.map(({ line }) => line);
    expect(lines).toContain(7);
    expect(at(at(hosts, 0).lines, 7 - 1)).toBe("  T1_g_float[iS2{4}, iS3{8}]");
  });

  it("names the repair", () => {
    expect(data.tables.map(({ title }) => title)).toContain("Repair");
    expect(data.verdict).toEqual({ tone: "bad", text: "1 finding: some order of the commands is wrong" });
  });
});

it("a deadlock shows what runs, and leaves out what never does", () => {
  const data = reportOf("deadlock", 2);
  expect(data.findings.map(({ code }) => code)).toContain("deadlock");
  const { slices } = at(at(data.views, 0).timeline.runs, 0);
  const { works } = at(data.views, 0).timeline;
  const ran = [...slices.work].filter((work) => at(works, work).kind !== "wait").length;
  expect(ran).toBeGreaterThan(0);
  expect(ran).toBeLessThan(data.commands);
});

it("commands of a step come after what they wait for", () => {
  const { views } = reportOf("redundant-synchronization");
  const { slices } = at(at(views, 0).timeline.runs, 0);
  expect(slices.edges.length).toBeGreaterThan(0);
  for (let slice = 0; slice + 1 < slices.edgeStart.length; slice++) {
    for (const from of slices.edges.subarray(at(slices.edgeStart, slice), at(slices.edgeStart, slice + 1))) {
      const isWait = at(slices.start, slice) < at(slices.start, from) + at(slices.duration, from);
      const { works } = at(views, 0).timeline;
      expect(!isWait || at(works, at(slices.work, slice)).kind === "wait").toBe(true);
    }
  }
});

it("a verified program says what was proven", () => {
  const data = reportOf("redundant-synchronization");
  expect(data.verdict.tone).toBe("good");
  expect(data.tables.map(({ title }) => title)).toEqual(["What was proven", "Streams"]);
  expect(data.facts.map(({ label }) => label)).toContain("pairs");
  expect(decodeColumns(encodeColumns(data))).toEqual(data);
});
