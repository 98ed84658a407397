/** Traces of PyTorch's profiler: written ones with known times, and those of two H200 against a grid of moments. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { DiagnosticError } from "../../../src/diagnostics/diagnostic.ts";
import { explainProfile } from "../../../src/import/profiler-traces/exposed-communication.ts";
import { type ProfilerTrace, readProfilerTrace } from "../../../src/import/profiler-traces/profiler-trace.ts";

interface Slice {
  readonly name?: string;
  readonly cat?: string;
  /** Microseconds. */
  readonly at: readonly [start: number, end: number];
  readonly op?: string;
  /** Null for kernels of CUDA graphs, of which the trace does not say it. */
  readonly group?: string | null;
  readonly launchedAt?: number;
  readonly device?: number;
}

/** A trace with the steps 1 and 2, which the host issues in the microseconds 0 to 100 and 100 to 200. */
function written(rank: number, slices: readonly Slice[], steps = [1, 2], clock = 0): unknown {
  const host = steps.map((step) => ({
    ph: "X",
    cat: "user_annotation",
    name: `ProfilerStep#${step}`,
    ts: clock + 100 * (step - 1),
    dur: 100,
  }));
  const events = slices.flatMap(
    ({ name = "gemm", cat = "kernel", at: [start, end], op, group, launchedAt = 0, device = 0 }, i) => [
      {
        ph: "X",
        cat: "cuda_runtime",
        name: "cudaLaunchKernel",
        ts: clock + launchedAt,
        dur: 1,
        args: { correlation: i },
      },
      {
        ph: "X",
        cat,
        name: op === undefined ? name : "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)",
        ts: clock + start,
        dur: end - start,
        args: {
          device,
          correlation: i,
          ...(op === undefined || group === null
            ? {}
            : {
                "Collective name": op,
                dtype: "BFloat16",
                "In msg nelems": 500,
                "Out msg nelems": 1000,
                "Process Group Name": group ?? "0",
                "Process Group Description": "tp",
                "Process Group Ranks": "[0, 1]",
              }),
        },
      },
    ],
  );
  return { schemaVersion: 1, distributedInfo: { rank }, traceEvents: [...host, ...events, { ph: "M", name: "x" }] };
}

function explained(...documents: readonly unknown[]): ReturnType<typeof explainProfile> {
  return explainProfile(documents.map((each, i) => readProfilerTrace(each, `trace_${i}.json`, i)));
}

const early = [
  { at: [1000, 1040] },
  { at: [1030, 1060], op: "allreduce" },
  { at: [1060, 1070], cat: "gpu_memset" },
  { at: [2000, 2010], launchedAt: 100 },
  { at: [2010, 2050], op: "allreduce", launchedAt: 100 },
  // After the last step.
  { at: [3000, 3100], launchedAt: 250 },
] as const;
const lateRank = [
  { at: [1000, 1050] },
  { at: [1050, 1060], op: "allreduce" },
  { at: [2000, 2040], launchedAt: 100 },
  { at: [2040, 2050], op: "allreduce", launchedAt: 100 },
] as const;

const micro = (milliseconds: number | null): number | null =>
  milliseconds === null ? null : Math.round(milliseconds * 1e6) / 1e3;

describe("a profiled run", () => {
  it("has its times by rank in the mean of the steps", () => {
    const { steps, ranks } = explained(written(0, early), written(1, lateRank));
    expect(steps).toEqual(["ProfilerStep#1", "ProfilerStep#2"]);
    const times = ranks.map(({ rank, ...each }) => [rank, ...Object.values(each).map(micro)]);
    // step: 1,000 to the next one and 50; idle: 930 before the next step.
    expect(times).toEqual([
      [0, (1000 + 50) / 2, (40 + 10) / 2, (30 + 40) / 2, (20 + 40) / 2, (20 + 30) / 2, 930 / 2],
      [1, (1000 + 50) / 2, (50 + 40) / 2, (10 + 10) / 2, (10 + 10) / 2, 0, 940 / 2],
    ]);
  });

  it("has the collectives of the rank that exposes most, and who is late", () => {
    const { rank, collectives, late } = explained(written(0, early), written(1, lateRank));
    expect(rank).toBe(0);
    expect(collectives).toMatchObject([
      { op: "allreduce", group: { description: "tp", ranks: [0, 1] }, dtype: "BFloat16", bytes: 2000, times: 1 },
    ]);
    expect(collectives.map((each) => [each.milliseconds, each.exposed, each.waiting].map(micro))).toEqual([
      [35, 30, 25],
    ]);
    expect(late.map((each) => [each.rank, micro(each.milliseconds)])).toEqual([[1, 25]]);
  });

  it("is the same where clocks differ by a second and a half", () => {
    const shifted = explained(written(0, early), written(1, lateRank, [1, 2], 1_500_000));
    const together = explained(written(0, early), written(1, lateRank));
    expect(shifted.late.map((each) => [each.rank, micro(each.milliseconds)])).toEqual(
      together.late.map((each) => [each.rank, micro(each.milliseconds)]),
    );
  });

  it("counts a moment of two collectives once, for the one that began first", () => {
    const { ranks, collectives } = explained(
      written(0, [{ at: [0, 30], op: "a" }, { at: [10, 40], op: "b" }, { at: [35, 50] }], []),
    );
    expect(micro(ranks[0]?.exposed ?? 0)).toBe(35);
    expect(collectives.map(({ op, exposed }) => [op, micro(exposed)])).toEqual([
      ["a", 30],
      ["b", 5],
    ]);
  });

  it("waits for nobody where ranks issue different collectives, and says so", () => {
    const other = lateRank.map((each) => ("op" in each ? { ...each, op: "broadcast" } : each));
    const { ranks, late, notes } = explained(written(0, early), written(1, other));
    expect(ranks.map(({ waiting }) => waiting)).toEqual([null, null]);
    expect(late).toEqual([]);
    expect(notes).toEqual([expect.stringMatching(/^2 collectives differ/u)]);
  });

  it("names a collective of a CUDA graph by its kernel, and other devices of the process do not count", () => {
    const { collectives, ranks } = explained(
      written(0, [{ at: [0, 30], op: "x", group: null }, { at: [30, 40] }, { at: [0, 100], device: 1 }], []),
    );
    expect(collectives).toMatchObject([{ op: "AllReduce", group: null, bytes: null }]);
    expect(micro(ranks[0]?.step ?? 0)).toBe(40);
  });
});

describe("traces of two H200", () => {
  const read = (name: string): readonly ProfilerTrace[] =>
    [0, 1].map((rank) => {
      const file = new URL(`${name}-rank${rank}.json`, import.meta.url);
      return readProfilerTrace(JSON.parse(readFileSync(file, "utf8")), file.pathname, rank);
    });

  it("expose as much communication as moments on a grid do", () => {
    const traces = read("step");
    const { ranks, steps } = explainProfile(traces);
    expect(steps).toHaveLength(3);
    for (const [i, { slices }] of traces.entries()) {
      const grid = 1e-4;
      let [exposed, communication] = [0, 0];
      for (const step of steps) {
        const own = slices.filter((each) => each.step === step);
        const [from, to] = [Math.min(...own.map(({ start }) => start)), Math.max(...own.map(({ end }) => end))];
        for (let i = 0; from + (i + 0.5) * grid < to; i++) {
          const time = from + (i + 0.5) * grid;
          const now = own.filter(({ start, end }) => start <= time && time < end).map(({ kind }) => kind);
          if (!now.includes("communication")) continue;
          communication += grid;
          if (!now.includes("kernel")) exposed += grid;
        }
      }
      expect(ranks[i]?.communication).toBeCloseTo(communication / 3, 3);
      expect(ranks[i]?.exposed).toBeCloseTo(exposed / 3, 3);
    }
  });

  it("say that rank 1, which had more to do, is late", () => {
    const { late, collectives } = explainProfile(read("step"));
    expect(late[0]?.rank).toBe(1);
    expect(collectives.map(({ op, times }) => [op, times])).toEqual([
      ["_reduce_scatter_base", 2],
      ["_allgather_base", 2],
      ["allreduce", 1],
      ["send", 1],
    ]);
  });

  it("have the kernels of symmetric memory and copies between GPUs as communication", () => {
    const { collectives } = explainProfile(read("symmetric-memory"));
    expect(collectives.map(({ op, times, bytes }) => [op, times, bytes])).toEqual([
      ["one_shot_all_reduce", 3, null],
      ["copy between GPUs", 3, 2 ** 21],
    ]);
  });
});

describe("is refused:", () => {
  const found = (work: () => unknown): string => {
    try {
      work();
    } catch (error) {
      if (error instanceof DiagnosticError)
        return error.diagnostics.map((each) => `${each.code}: ${each.found}`).join();
    }
    return "no diagnostic";
  };

  it.each<[what: string, document: unknown, text: string]>([
    ["a list", [], "trace-invalid: []"],
    ["no events", {}, "trace-invalid: nothing"],
    ["an event that is no object", { traceEvents: [3] }, "trace-invalid: 3"],
    ["a slice that ends before it begins", written(0, [{ at: [10, 0] }]), "trace-invalid: -10"],
    ["a trace of the host alone", written(0, []), "trace-invalid: no kernel of a GPU"],
  ])("%s", (_, document, text) => {
    expect(found(() => explained(document))).toBe(text);
  });

  it("two traces of one rank, and traces of different steps", () => {
    expect(found(() => explained(written(0, early), written(0, early)))).toBe(
      "trace-invalid: a second trace of rank 0",
    );
    expect(found(() => explained(written(0, early, [1]), written(1, early, [2])))).toBe(
      "trace-invalid: no step that all traces have",
    );
  });
});
