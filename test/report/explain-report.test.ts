/** The data of the report of an explained program. */
import { beforeAll, describe, expect, it } from "vitest";
import { DeviceMesh, explain, type Explanation, Fusion, linear } from "@braid-compiler/braid";
import { changesOf, isWorthIt } from "../../src/explain/changes.ts";
import { dependencesOf } from "../../src/explain/dependences.ts";
import { explainReport } from "../../src/report/build/explain-report.ts";
import type { ReportData } from "../../src/report/data/report-data.ts";
import { selectionOf } from "../../src/report/view/selection.ts";
import { at } from "../../src/support/invariant.ts";
import { machine, perMegabyte, transfersAt } from "../explain/machine.ts";

const devices = 2;

/** A gather in four chunks, each of which a GEMM reads. */
function source(): Fusion {
  const f = new Fusion();
  const x = f.input([4, devices, 64, 256], "bfloat16");
  const w = f.input([128, 256], "bfloat16");
  const y = linear(x, w);
  f.output(y);
  const mesh = DeviceMesh.range(devices);
  for (const tensor of [x, w, y]) tensor.setDeviceMesh(mesh);
  x.axis(1).parallelize("DIDx");
  y.axis(0).parallelize("Stream");
  return f;
}

let explanation: Explanation;
let data: ReportData;
beforeAll(() => {
  const slow = machine({ transfers: transfersAt(perMegabyte(100)) });
  explanation = explain({ build: source }.build(), { devices, on: "cuda", graph: true, schedule: "as-written" }, slow);
  data = explainReport({ title: "a program", machine: "made up", explanation });
});

describe("the report of an explained program", () => {
  it("has every launch, copy and transfer of the trace as a slice of its stream, at its time", () => {
    const { timeline } = at(data.views, 0);
    const { slices, tracks } = at(timeline.runs, 0);
    const drawn = tracks.flatMap(({ rank, stream, first, count }) =>
      Array.from({ length: count }, (_, i) => first + i)
        .filter((slice) => at(timeline.works, at(slices.work, slice)).kind !== "wait")
        .map((slice) => ({
          rank,
          stream,
          command: at(slices.command, slice),
          end: at(slices.start, slice) + at(slices.duration, slice),
        })),
    );
    const ends = (all: readonly { rank: number; stream: number; command: number; end: number }[]): readonly string[] =>
      all.map(({ rank, stream, command, end }) => `${rank} ${stream} ${command} ${end.toFixed(9)}`).toSorted();
    expect(ends(drawn)).toEqual(ends(explanation.run.trace));
    for (const { first, count } of tracks) {
      for (let i = first + 1; i < first + count; i++) {
        expect(at(slices.start, i)).toBeGreaterThanOrEqual(at(slices.start, i - 1) + at(slices.duration, i - 1) - 1e-9);
      }
    }
  });

  it("draws arrows to each GEMM from the transfer that it reads, which ended before", () => {
    const { timeline } = at(data.views, 0);
    const { slices } = at(timeline.runs, 0);
    const kindOf = (slice: number): string => at(timeline.works, at(slices.work, slice)).kind;
    const gemms = [...slices.work.keys()].filter((slice) => kindOf(slice) === "gemm");
    expect(gemms.length).toBe(4 * devices);
    for (const gemm of gemms) {
      const from = [...slices.edges.subarray(at(slices.edgeStart, gemm), at(slices.edgeStart, gemm + 1))];
      const transfers = from.filter((slice) => kindOf(slice) === "transfer");
      expect(transfers.map((slice) => at(slices.iteration, slice))).toContain(at(slices.iteration, gemm));
      for (const slice of from) {
        expect(at(slices.start, slice) + at(slices.duration, slice)).toBeLessThanOrEqual(at(slices.start, gemm) + 1e-9);
      }
    }
  });

  it("states the bubble of a pipeline, and none elsewhere", () => {
    const valueOf = (bubble: number | null): string | undefined =>
      explainReport({ title: "", machine: "", explanation: { ...explanation, bubble } }).facts.find(
        ({ label }) => label === "bubble",
      )?.value;
    expect(valueOf(0.286)).toBe("28.6 %");
    expect(valueOf(explanation.bubble)).toBeUndefined();
  });

  it("has a critical path without gaps of more than its waits, from the start to the last slice", () => {
    const { critical, slices, end } = at(at(data.views, 0).timeline.runs, 0);
    const ends = [...critical].map((slice) => at(slices.start, slice) + at(slices.duration, slice));
    expect(ends).toEqual(ends.toSorted((a, b) => a - b));
    expect(ends.at(-1)).toBeCloseTo(end, 6);
    // Nothing but transfers and GEMMs takes time on this machine.
    const busy = [...critical].reduce((sum, slice) => sum + at(slices.duration, slice), 0);
    expect(busy).toBeCloseTo(end, 6);
  });

  it("links causes to idle time that adds up, regions and lines to their slices", () => {
    const { timeline } = at(data.views, 0);
    const run = at(timeline.runs, 0);
    const table = (title: string) => data.tables.find((each) => each.title === title);
    const [causes, regions] = [table("Why time is exposed"), table("Regions")];
    const first = at(causes?.rows ?? [], 0);
    expect(first.link.kind).toBe("cause");
    const selected = selectionOf(timeline, first.link);
    expect(selected.extent?.[0]).toBeGreaterThanOrEqual(0);
    expect(at(selected.slices, 0).length).toBeGreaterThan(0);
    expect([...at(selected.slices, 0)]).toEqual([...at(selected.slices, 0)].toSorted((a, b) => a - b));
    const idleOf = (rank: number): number =>
      run.idle.reduce((sum, each) => sum + (each.rank === rank ? each.end - each.start : 0), 0);
    for (const { rank } of timeline.ranks) expect(idleOf(rank)).toBeGreaterThan(0);
    const ofRegion = selectionOf(timeline, at(regions?.rows ?? [], 0).link);
    expect(at(ofRegion.slices, 0).length).toBeGreaterThan(4 * devices);
    const statement = at(
      timeline.statements,
      at(timeline.works, at(run.slices.work, at(at(ofRegion.slices, 0), 0))).statement,
    );
    expect(statement.line).not.toBeNull();
    const text = at(at(data.hosts, statement.host).lines, (statement.line ?? 0) - 1);
    expect(text.trim()).not.toBe("");
    const ofLine = selectionOf(timeline, { kind: "line", host: statement.host, line: statement.line ?? 0 });
    expect(at(ofLine.slices, 0).length).toBeGreaterThan(0);
    expect(at(ofLine.slices, 0).length).toBeLessThan(run.slices.start.length);
  });

  it("has what moves, and what to change or that nothing gains", () => {
    const moves = data.tables.find(({ title }) => title === "What moves between devices");
    expect(moves?.rows.map(({ cells }) => cells.slice(0, 4))).toEqual([["T0", "Allgather", "DIDx", "yes"]]);
    const changes = data.tables.find(({ title }) => title === "What to change");
    expect(changes?.rows.map(({ cells }) => cells[0])).toEqual(
      changesOf(explanation)
        .filter((change) => isWorthIt(change, explanation.run.milliseconds))
        .map(({ change }) => change),
    );
    const none = explainReport({ title: "", machine: null, explanation: { ...explanation, alternatives: [] } });
    const table = none.tables.find(({ title }) => title === "What to change");
    expect([table?.rows, table?.note]).toEqual([[], expect.stringMatching(/^No change that was tried.* gain 1 %\.$/u)]);
  });

  it("has the rules that kept communication out of loops, with their reasons", () => {
    const f = new Fusion();
    const x = f.input([4, devices, 64, 256], "bfloat16");
    const w = f.input([128, 256], "bfloat16");
    const y = linear(x, w);
    f.output(y);
    for (const tensor of [x, w, y]) tensor.setDeviceMesh(DeviceMesh.range(devices));
    x.axis(1).parallelize("DIDx");
    const slow = machine({ transfers: transfersAt(perMegabyte(100)) });
    const whole = explain(f, { devices, on: "cuda", graph: true, schedule: "as-written" }, slow);
    const report = explainReport({ title: "", machine: null, explanation: whole });
    const kept = report.tables.find(({ title }) => title === "Kept out of loops");
    expect(whole.refusals.length).toBeGreaterThan(0);
    expect(kept?.rows.map(({ cells }) => cells)).toEqual(whole.refusals.map(({ op, because }) => [op, because]));
  });

  it("marks a program that hides nothing or is slower than its serial form", () => {
    const bad = (serial: number, hidden: number): readonly string[] =>
      explainReport({
        title: "",
        machine: null,
        explanation: {
          ...explanation,
          serial,
          run: { ...explanation.run, overlap: { ...explanation.run.overlap, overlap: hidden } },
        },
      }).facts.flatMap(({ label, isBad }) => (isBad === true ? [label] : []));
    const { milliseconds } = explanation.run;
    expect(bad(2 * milliseconds, 0.8)).toEqual([]);
    expect(bad(milliseconds / 2, 0.05)).toEqual(["communication hidden", "serial"]);
  });

  it("shows one text for ranks that run the same, and memory that never passes what is reserved", () => {
    expect(data.hosts.flatMap(({ ranks }) => ranks)).toEqual([0, 1]);
    const { memory } = at(at(data.views, 0).timeline.runs, 0);
    expect(memory.length).toBe(devices);
    for (const { bytes, resident, reserved } of memory) {
      expect(Math.max(...bytes)).toBeLessThanOrEqual(reserved);
      expect(Math.min(...bytes)).toBeGreaterThanOrEqual(resident);
      expect(Math.max(...bytes)).toBeGreaterThan(resident);
    }
  });

  it("has slices for as many commands as the program has work", () => {
    const { order } = dependencesOf(explanation.compilation.program);
    expect(order.length).toBeGreaterThan(at(at(data.views, 0).timeline.runs, 0).slices.start.length / 2);
  });
});
