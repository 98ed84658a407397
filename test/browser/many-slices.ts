/** The data of a long run, without a program: streams whose slices follow each other. */
import type { ReportData } from "../../src/report/data/report-data.ts";
import type { SliceColumns, TimelineData, Track } from "../../src/report/data/timeline-data.ts";

const streams = ["caller", "worker 0", "worker 1", "copies"];

export function manySlices(ranks: number, perRank: number): ReportData {
  const count = ranks * perRank;
  const each = perRank / streams.length;
  const slices: SliceColumns = {
    start: new Float64Array(count),
    duration: new Float64Array(count),
    command: new Int32Array(count),
    work: new Int32Array(count),
    iteration: new Int32Array(count),
    edgeStart: Int32Array.from({ length: count + 1 }, (_, i) => Math.min(i, count - 1)),
    edges: Int32Array.from({ length: count - 1 }, (_, i) => i),
    reasons: new Int32Array(Math.max(0, count - 1)),
  };
  const tracks: Track[] = [];
  for (let track = 0; track < ranks * streams.length; track++) {
    const stream = track % streams.length;
    const rank = (track - stream) / streams.length;
    tracks.push({ rank, stream, first: track * each, count: each });
    let time = 0;
    for (let i = 0; i < each; i++) {
      const slice = track * each + i;
      time += 0.000_1 * ((i * 7 + track) % 5);
      slices.start[slice] = time;
      slices.duration[slice] = 0.000_1 * (1 + ((i * 13 + track) % 9));
      time += slices.duration[slice] ?? 0;
      slices.command[slice] = i * streams.length + stream;
      slices.work[slice] = (i + stream) % 3;
      slices.iteration[slice] = i % 4;
    }
  }
  const end = slices.start.reduce((latest, start) => Math.max(latest, start), 0) + 0.001;
  const timeline: TimelineData = {
    unit: "milliseconds",
    ranks: Array.from({ length: ranks }, (_, rank) => ({ rank, streams: streams.map((name, id) => ({ id, name })) })),
    runs: [
      {
        name: "predicted",
        end,
        tracks,
        slices,
        critical: Int32Array.from({ length: each }, (_, i) => i),
        idle: Array.from({ length: 10_000 }, (_, i) => ({
          rank: 0,
          cause: i % 2 === 0 ? "linkBound" : "latency",
          label: i % 2 === 0 ? "link-bound" : "latency",
          start: (i * end) / 10_000,
          end: ((i + 0.5) * end) / 10_000,
          slice: i,
        })),
        missing: [],
        memory: [],
      },
    ],
    works: (["gemm", "copy", "kernel"] as const).map((kind, statement) => ({
      kind,
      label: kind,
      details: kind,
      statement,
      bytes: 1e6,
      flops: 0,
    })),
    statements: ["a", "b", "c"].map((text, i) => ({ text, region: i, host: 0, line: i + 1 })),
    iterations: ["", "1", "2", "3"],
  };
  return {
    title: "many",
    verdict: { tone: "plain", text: `${count} slices` },
    facts: [],
    views: [{ name: "run", timeline, marked: [] }],
    tables: [
      {
        title: "Causes",
        note: "",
        columns: [{ label: "cause", numeric: false }],
        rows: [{ cells: ["link-bound"], note: "", link: { kind: "cause", cause: "linkBound" } }],
      },
    ],
    findings: [],
    hosts: [{ ranks: [0], lines: ["a", "b", "c"] }],
    notes: [],
  };
}
