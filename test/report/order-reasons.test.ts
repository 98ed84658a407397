/** Why one slice of a report stands before another: rows of programs in which each reason is known. */
import { describe, expect, it } from "vitest";
import { explain, type ExplainOptions, Fusion, DeviceMesh, linear } from "@braid-compiler/braid";
import { explainReport } from "../../src/report/build/explain-report.ts";
import { orderReasons, type TimelineData } from "../../src/report/data/timeline-data.ts";
import { describeSlice } from "../../src/report/view/describe.ts";
import { at } from "../../src/support/invariant.ts";
import { machine, perMegabyte, transfersAt } from "../explain/machine.ts";

const devices = 2;

/** A gather in six chunks, each of which a GEMM reads. */
function gathered(): Fusion {
  const f = new Fusion();
  const [x, w] = [f.input([6, devices, 64, 256], "bfloat16"), f.input([128, 256], "bfloat16")];
  const y = linear(x, w);
  f.output(y);
  for (const tensor of [x, w, y]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  x.axis(1).parallelize("DIDx");
  y.axis(0).parallelize("Stream");
  return f;
}

function timelineOf(fusion: Fusion, options: Partial<ExplainOptions>): TimelineData {
  const profile = machine({ transfers: transfersAt(perMegabyte(100)) });
  const explanation = explain(
    fusion,
    { devices, on: "cuda", graph: true, schedule: "as-written", ...options },
    profile,
  );
  return at(explainReport({ title: "", machine: null, explanation }).views, 0).timeline;
}

/** `transfer 3 -> gemm 3: data`, by kind and iteration, of one rank. */
function orders({ runs, works, iterations }: TimelineData): readonly string[] {
  const { slices, tracks } = at(runs, 0);
  const nameOf = (slice: number): string =>
    `${at(works, at(slices.work, slice)).kind} ${at(iterations, at(slices.iteration, slice))}`;
  const isOfRank = (slice: number): boolean =>
    tracks.some(({ rank, first, count }) => rank === 0 && slice >= first && slice < first + count);
  return [...slices.work.keys()].filter(isOfRank).flatMap((slice) =>
    Array.from({ length: at(slices.edgeStart, slice + 1) - at(slices.edgeStart, slice) }, (_, i) => {
      const edge = at(slices.edgeStart, slice) + i;
      return `${nameOf(at(slices.edges, edge))} -> ${nameOf(slice)}: ${at(orderReasons, at(slices.reasons, edge))}`;
    }),
  );
}

describe("a chunk's GEMM and the transfers around it", () => {
  const timeline = timelineOf(gathered(), { streams: 2 });
  const all = orders(timeline);

  it("a GEMM reads what its own transfer brings", () => {
    for (const chunk of [0, 1, 2, 3, 4, 5]) expect(all).toContain(`transfer ${chunk} -> gemm ${chunk}: data`);
  });

  it("a transfer writes where the GEMM of two chunks before has read, or comes after it in the order of the streams", () => {
    const before = all.filter((text) => /^gemm \d -> transfer \d/.test(text));
    expect(before).toContain("gemm 0 -> transfer 2: memory reuse");
    expect(before.every((text) => !text.endsWith(": data"))).toBe(true);
  });

  it("is told in the words of a slice", () => {
    const { slices } = at(timeline.runs, 0);
    const gemm =
      [...slices.work.keys()].find((slice) => at(timeline.works, at(slices.work, slice)).kind === "gemm") ?? -1;
    const after = describeSlice(timeline, 0, gemm).figures.flatMap(([name, value]) =>
      name === "after" ? [value] : [],
    );
    expect(after).toEqual([expect.stringMatching(/^Allgather on rank 0, .+ \(data\)$/)]);
  });
});
