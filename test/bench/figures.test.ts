/** Figures derived from times: rates, shares, hidden communication; rows of others; CSV and plot of unusual rows. */
import pc from "picocolors";
import { describe, expect, it } from "vitest";
import { benchRows, quantile } from "../../bench/compare/bench-row.ts";
import type { BenchProblem } from "../../bench/compare/bench-problem.ts";
import { csvText } from "../../bench/compare/csv.ts";
import { parseImplementations } from "../../bench/compare/implementation.ts";
import type { Measured } from "../../bench/compare/measure.ts";
import { plotSvg } from "../../bench/compare/plot.ts";
import { resultsText } from "../../bench/cli/results-table.ts";
import type { Problem } from "../../bench/compare/primitives.ts";
import { at } from "../../src/support/invariant.ts";

const large: Problem = { primitive: "tp-columnwise", m: 32_768, n: 8192, k: 16_384, dtype: "bfloat16", devices: 8 };

function timed(name: string, ...milliseconds: readonly number[]): Measured {
  const unknown = { hostMicroseconds: null, hostInRowMicroseconds: null, partOfBound: null, traced: null };
  const result = { kind: "done", value: { milliseconds, ...unknown } } as const;
  return { implementation: at(parseImplementations(name, "test"), 0), note: null, result };
}

const measured: readonly Measured[] = [
  timed("compute-only", 10),
  timed("serial", 14),
  timed("braid", 11, 10.5, 13, 10.5, 11),
  timed("braid;streams=1", 16),
  timed("torch-nccl", 13.2),
  timed("torch-async-tp", 12.1),
  timed("xla", 16.5),
  timed("xla-shard-map", 15.4),
  timed("communication-only", 4),
  {
    implementation: at(parseImplementations("transformer-engine", "test"), 0),
    note: null,
    result: { kind: "failed", why: 'no "te", sorry' },
  },
];

describe("figures", () => {
  const rows = benchRows(large, measured);
  const figuresOf = (name: string, option = "") =>
    rows.find((row) => row.name === name && row.option === option)?.figures ?? null;

  it("are of the median, beside compute-only, serial and PyTorch's better path of the same run", () => {
    const braid = figuresOf("braid");
    expect(braid).toMatchObject({ median: 11, spread: 0.5, computeShare: 10 / 11, hidden: 3 / 4, overSerial: 14 / 11 });
    expect(braid?.overPyTorch).toBeCloseTo(1.1, 12);
    expect(braid?.overXla).toBeCloseTo(1.4, 12);
    expect(braid?.teraflops).toBeCloseTo((2 * 32_768 * 8192 * 16_384) / 11e9, 9);
    // Seven of eight shards of [m / 8, k] come in.
    expect(braid?.gigabytesPerSecond).toBeCloseTo(((7 / 8) * 32_768 * 16_384 * 2) / 11e6, 9);
    expect(figuresOf("braid", "streams=1")?.hidden).toBe(-0.5);
    expect(figuresOf("serial")?.hidden).toBe(0);
    expect(figuresOf("compute-only")).toMatchObject({ hidden: null, gigabytesPerSecond: null, computeShare: 1 });
    expect(figuresOf("communication-only")).toMatchObject({ teraflops: null, computeShare: null, hidden: null });
  });

  it("count the bytes of each primitive", () => {
    const bytesOf = (primitive: Problem["primitive"]): number => {
      const problem: Problem = { primitive, m: 10, n: 3, k: 7, dtype: "float", devices: 5 };
      return at(benchRows(problem, [timed("braid", 1)]), 0).figures?.gigabytesPerSecond ?? NaN;
    };
    expect(bytesOf("tp-columnwise")).toBeCloseTo((0.8 * 10 * 7 * 4) / 1e6, 15);
    expect(bytesOf("tp-rowwise")).toBeCloseTo((0.8 * 10 * 3 * 4) / 1e6, 15);
    expect(bytesOf("tp-allreduce")).toBeCloseTo((1.6 * 10 * 3 * 4) / 1e6, 15);
  });

  it("stand beside published ones of the same size alone", () => {
    const published = rows.filter(({ source }) => source !== "measured");
    expect(published.map(({ name, figures }) => [name, Math.round(figures?.teraflops ?? 0)])).toEqual([
      ["nvFuser, NCCL", 560],
      ["nvFuser, p2p pipeline", 678],
      ["TransformerEngine", 660],
    ]);
    expect(benchRows({ ...large, m: 16_384 }, measured)).toHaveLength(measured.length);
    expect(benchRows({ ...large, dtype: "float" }, measured)).toHaveLength(measured.length);
  });

  it("of nothing hidden are none where serial is no slower than compute-only", () => {
    const [row] = benchRows(large, [timed("braid", 1), timed("serial", 2), timed("compute-only", 2)]);
    expect(row?.figures?.hidden).toBeNull();
  });

  it("go into CSV with quotes where they are needed, and into a picture where they have a rate", () => {
    const lines = csvText(rows, { device: "GPU <1>" }).trimEnd().split("\n");
    expect(lines).toHaveLength(1 + measured.length + 3);
    expect(lines[10]).toMatch(/^transformer-engine,,,,,32768,8192,16384,bfloat16,,,8,.*,measured,,"no ""te"", sorry"$/);
    const picture = plotSvg(rows, { device: "GPU <1>" });
    expect(picture.match(/<rect x=/g)).toHaveLength(8 + 3);
    expect(picture).toContain("8 x GPU &lt;1&gt;");
    expect(picture).toContain(">TFLOP/s of each device");
    expect(picture).not.toMatch(/NaN|Infinity|undefined/);
  });
});

describe("a block", () => {
  const block: BenchProblem = {
    primitive: "block",
    model: "llama-3-8b",
    cut: "tp-sp",
    pass: "forward",
    dtype: "bfloat16",
    devices: 2,
  };
  const times = [timed("compute-only", 10), timed("serial", 14), timed("braid", 11), timed("torch-nccl-compile", 15)];

  it("has its time over the floor, and the part of PyTorch's beyond it that is saved", () => {
    const rows = benchRows(block, [...times, timed("torch-nccl", 16)]);
    const figures = (name: string) => rows.find((row) => row.name === name)?.figures;
    expect(figures("braid")).toMatchObject({ overFloor: 1.1, removed: (15 - 11) / (15 - 10), overPyTorch: 15 / 11 });
    expect(figures("compute-only")).toMatchObject({ overFloor: null, removed: null });
    expect(figures("torch-nccl")?.removed).toBeCloseTo(-0.2, 12);
    // Four times 33.5 MB come in: 0.363 ms at 370 GB/s.
    const bytes = (4 * 8192 * 4096) / 370e6;
    const linkBound = benchRows(block, [timed("compute-only", 0.1), timed("braid", 1)]);
    expect(linkBound[1]?.figures?.overFloor).toBeCloseTo(1 / bytes, 12);
    expect(benchRows(large, times)[2]?.figures).toMatchObject({ overFloor: null, removed: null });
  });

  it("sums what is saved beyond the floors of several blocks", () => {
    const second = { ...block, cut: "tp" } as const;
    const other = [timed("compute-only", 20), timed("braid", 24), timed("braid;chunks=4", 22), timed("torch-nccl", 25)];
    const rows = [...benchRows(block, [...times, timed("braid;chunks=4", 12)]), ...benchRows(second, other)];
    const summary = (of: typeof rows): string => resultsText(of, pc.createColors(false));
    const [, after = ""] = summary(rows).split("\n(PyTorch - this) / (PyTorch - floor), each summed over 2 blocks:\n");
    // PyTorch takes 5 ms longer than each floor.
    expect(after.split("\n").slice(0, 3)).toEqual([
      "  50.0 %  braid",
      "  60.0 %  braid (chunks=4)",
      "  70.0 %  the best of Braid's implementations at each block",
    ]);
    expect(summary(rows.filter(({ problem }) => problem === block))).not.toContain("summed over");
    const alone = benchRows(second, [timed("compute-only", 20), timed("braid", 24)]);
    expect(summary([...rows.slice(0, 3), ...alone])).not.toContain("- floor), each");
  });

  it("has a line for where the time goes, and the greatest causes of exposed communication", () => {
    const exposed = ["not in a loop", "latency", "host", "sums", "reuse"].map((because, i) => ({
      because,
      milliseconds: 0.5 - i / 10,
    }));
    const kernels = { gemms: 7.25, attention: 1.5, others: 0.25 };
    const communication = { milliseconds: 2, underKernels: 0.625 };
    const traced = { ...timed("braid", 11) };
    const result = traced.result;
    if (result.kind !== "done") throw new Error("timed");
    const rows = benchRows(block, [
      { ...traced, result: { ...result, value: { ...result.value, traced: { kernels, communication, exposed } } } },
    ]);
    const table = resultsText(rows, pc.createColors(false));
    expect(table).toContain(
      "\nbraid: GEMMs 7.250 ms, attention 1.500, others 0.2500, communication 2.000, 62.5 % of it under kernels; exposed: not in a loop 0.500 ms, latency 0.400 ms, host 0.300 ms, sums 0.200 ms\n",
    );
    expect(table).not.toContain("reuse");
    expect(csvText(rows, { device: "GPU" })).toContain("reuse 0.100 ms");
    expect(csvText(rows, { device: "GPU" })).toContain(",block,llama-3-8b,tp-sp,forward,");
  });
});

describe("the part of what is possible", () => {
  const milliseconds = (problem: Problem, ...times: readonly (readonly [string, number])[]) =>
    benchRows(
      problem,
      times.map(([name, time]) => timed(name, time)),
    );
  // Of 0.5 GB, a device of two receives a half: 0.7255 ms at 370 GB/s, more than the GEMM takes.
  const linkBound: Problem = { ...large, m: 32_768, k: 8192, n: 8, devices: 2 };
  const computeBound: Problem = { ...linkBound, m: 4096, n: 8192 };
  const rows = [
    ...milliseconds(linkBound, ["compute-only", 0.2], ["braid", 1], ["braid;streams=1", 2], ["torch-nccl", 1.5]),
    ...milliseconds(computeBound, ["compute-only", 2], ["braid", 2.2], ["braid;streams=1", 2.1], ["torch-nccl", 2.5]),
  ];
  const summary = (of: typeof rows): string => resultsText(of, pc.createColors(false));

  it("is log(PyTorch / Braid) over log(PyTorch / bound), where bytes or the GEMM bound it", () => {
    const bytes = (0.5 * 32_768 * 8192 * 2) / 370e6;
    expect(bytes).toBeCloseTo(0.7255, 4);
    const bounds = rows.filter(({ name }) => name === "braid").map(({ figures }) => figures?.boundOverPyTorch);
    expect(bounds).toEqual([1.5 / bytes, 1.5 / bytes, 1.25, 1.25]);
    const possible = Math.log(1.5 / bytes) + Math.log(1.25);
    const part = (first: number, second: number) =>
      `  ${((100 * (Math.log(first) + Math.log(second))) / possible).toFixed(1)} %  `;
    const [, after = ""] = summary(rows).split("\nlog(PyTorch / this) over log(PyTorch / bound), summed over 2 sizes");
    expect(after).toMatch(/^ \(bound: compute-only, or the bytes at 370 GB\/s if that is more\):\n/);
    expect(after.split("\n").slice(1, 4)).toEqual([
      `${part(1.5, 2.5 / 2.2)}braid`,
      `${part(0.75, 2.5 / 2.1)}braid (streams=1)`,
      `${part(1.5, 2.5 / 2.1)}the best of Braid's implementations at each size`,
    ]);
    expect(csvText(rows, { device: "GPU" })).toContain(`,${1.5},,${1.5 / bytes},`);
  });

  it("is not told for one size, without PyTorch, or where PyTorch is at the bound", () => {
    const told = "over log(PyTorch / bound)";
    expect(summary(rows)).toContain(told);
    expect(summary(rows.filter(({ problem }) => problem === linkBound))).not.toContain(told);
    const alone = [linkBound, computeBound].flatMap((each) => milliseconds(each, ["compute-only", 1], ["braid", 2]));
    expect(summary(alone)).not.toContain(told);
    const atBound = [linkBound, computeBound].flatMap((each) =>
      milliseconds(each, ["compute-only", 1], ["braid", 1.1], ["torch-nccl", 1]),
    );
    expect(summary(atBound)).not.toContain(told);
    expect(summary(atBound)).toContain("speedup over PyTorch's better path");
  });
});

describe("the host's time", () => {
  const told = (name: string, hostInRowMicroseconds: readonly number[] | null): Measured => ({
    implementation: at(parseImplementations(name, "test"), 0),
    note: null,
    result: {
      kind: "done",
      value: {
        milliseconds: [1, 1, 1],
        hostMicroseconds: [30, 22, 21],
        hostInRowMicroseconds,
        partOfBound: null,
        traced: null,
      },
    },
  });
  const rows = benchRows({ ...large, m: 64 }, [told("braid", [13, 9, 8]), told("serial", null)]);

  it("has a median of each kind, in CSV and in one column of the table", () => {
    const [head = "", ...lines] = csvText(rows, { device: "GPU" }).trimEnd().split("\n");
    const column = head.split(",").indexOf("host_time (us)");
    expect(head.split(",")[column + 1]).toBe("host_time in a row (us)");
    expect(lines.map((line) => line.split(",").slice(column, column + 2))).toEqual([
      ["22", "9"],
      ["22", ""],
    ]);
    const table = resultsText(rows, pc.createColors(false));
    expect(table).toMatch(/^implementation .* host \[us\]$/m);
    expect(table).toMatch(/^braid .* 22 \/ 9$/m);
    expect(table).toMatch(/^serial .* 22$/m);
    expect(table).toContain("\nhost: a run after a barrier / a run of several in a row");
    expect(resultsText(rows.slice(1), pc.createColors(false))).not.toContain("in a row");
  });
});

describe("quantile", () => {
  it("lies between neighbours", () => {
    expect(quantile([4, 1, 3, 2], 0.5)).toBe(2.5);
    expect(quantile([3, 1, 2], 0.25)).toBe(1.5);
    expect(quantile([7], 0.75)).toBe(7);
  });
});
