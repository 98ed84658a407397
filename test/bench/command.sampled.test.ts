/** `braid bench` on the CPU, as a user calls it: its measurements, validation, output and files. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { readBenchConfig } from "../../bench/compare/bench-config.ts";
import { sizeText } from "../../bench/compare/bench-problem.ts";
import { labelOf } from "../../bench/compare/implementation-label.ts";
import { planBench } from "../../bench/compare/bench-plan.ts";
import { braidOptionNames } from "../../bench/compare/braid/braid-options.ts";
import type { Primitive } from "../../bench/compare/primitives.ts";
import { implementationNames } from "../../bench/compare/implementation.ts";
import { roundProfile } from "../simulate/profile.ts";
import { cli } from "../cli/captured-cli.ts";
import { ownFolder } from "../cli/own-folder.ts";
import { everyNth } from "../support/suite.ts";

const folder = ownFolder();

const small = ["--set", "m=64,n=12,k=16", "--repeat", "2", "--check"] as const;

type BenchPlan = ReturnType<typeof planBench>;

/** Of a file of bench/configs. */
async function committedPlan(primitive: Primitive, name: string, devices = 8): Promise<BenchPlan> {
  const config = await readBenchConfig(path.resolve(import.meta.dirname, `../../bench/configs/${name}.json`));
  return planBench(primitive, { ...config, on: "cuda", seed: 0, timeout: 60, profile: null }, devices);
}

function expectCommitted(name: string, implementations: BenchPlan["implementations"], machine = "4xH200"): void {
  const file = path.resolve(import.meta.dirname, `../../bench/results/${name}-${machine}.csv`);
  const results = readFileSync(file, "utf8");
  for (const implementation of implementations) {
    const option = implementation.kind === "braid" ? implementation.said : "";
    expect(results).toContain(labelOf({ name: implementation.name, option }));
  }
}

interface Document {
  readonly machine: { readonly device: string };
  readonly rows: readonly {
    readonly name: string;
    readonly option: string;
    readonly partOfBound: number | null;
    readonly figures: { readonly times: readonly number[]; readonly hidden: number | null };
  }[];
}

describe.each(everyNth(["tp-columnwise", "tp-rowwise", "tp-allreduce"], 2))("braid bench %s", (primitive) => {
  it("runs every form and schedule with the right results, beside compute-only and serial", async () => {
    const impls = [
      "braid;form=rotated;protocol=get,put",
      "braid;form=rotated,linear,broadcast,collective;backend=nccl",
      "braid;form=broadcast,collective;backend=cuda",
      "braid;form=collective;chunks=2",
      "braid;inPlace=true;ownLast=true;splitChunks=2;computeStreams=2",
      "communication-only",
      "serial;backend=cuda",
      ...(primitive === "tp-columnwise"
        ? []
        : ["braid;form=rotated,broadcast;outputs=2;inPlace=true;ownLast=true;computeStreams=2"]),
    ];
    const args = impls.flatMap((impl) => ["--impl", impl]);
    const { status, out, err } = await cli("bench", primitive, ...small, ...args, "--json");
    expect(err).not.toContain("left out");
    expect(status, err).toBe(0);
    const { rows } = JSON.parse(out) as Document;
    expect(rows).toHaveLength(2 + 2 + 4 + 2 + 1 + 1 + 1 + 1 + (primitive === "tp-columnwise" ? 0 : 2));
    expect(rows.slice(0, 2).map(({ name, option }) => name + option)).toEqual(["compute-only", "serial"]);
    for (const { partOfBound, figures } of rows) {
      expect(partOfBound).toBeLessThanOrEqual(1);
      expect(figures.times).toHaveLength(2);
    }
    expect(rows.find(({ name }) => name === "serial")?.figures.hidden ?? 0).toBe(0);
  });
});

describe("braid bench", () => {
  it("writes CSV with DDLB's columns first, a picture, and a table", async () => {
    const csv = path.join(folder.path, "rows.csv");
    const plot = path.join(folder.path, "rows.html");
    const sizes = ["--set", "size=32x8x16,64x8x16,dtype=float,bfloat16", "--repeat", "1"];
    const files = ["--out", csv, "--out", plot];
    const { status, out } = await cli("bench", "tp_columnwise", ...sizes, ...files, "--impl", "braid;streams=2");
    expect(status).toBe(0);
    const [head = "", ...lines] = readFileSync(csv, "utf8").trimEnd().split("\n");
    expect(head).toMatch(
      /^implementation,mean_time \(ms\),std_time,min_time,max_time,m,n,k,dtype,Throughput \(TFLOPS\),Throughput std \(TFLOPS\),world_size,hostname,option,valid,primitive,/,
    );
    expect(lines.map((line) => line.split(",")[0])).toEqual(
      Array.from({ length: 4 }, () => ["compute-only", "serial", "braid (streams=2)"]).flat(),
    );
    expect(readFileSync(plot, "utf8").match(/<rect x=/g)).toHaveLength(12);
    expect(out.match(/^tp-columnwise m \d+ n 8 k 16 (float|bfloat16), 4 devices$/gm)).toHaveLength(4);
    expect(out).toMatch(/^implementation +time \[ms\] +spread +TFLOP\/s +of compute/m);
    expect(out).toMatch(
      /^speedup over serial, geometric mean of 4 sizes \(least\):\n +\d\.\d{3} .* {2}braid \(streams=2\)/m,
    );
  });

  it("takes a configuration of DDLB's form, and flags over it", async () => {
    const config = folder.write(
      "bench.json",
      JSON.stringify({
        benchmark: {
          primitive: "tp_rowwise",
          m: [32, 64],
          n: 8,
          k: 16,
          dtype: "float32",
          validate: true,
          num_iterations: 1,
          num_warmups: 1,
          devices: 2,
          implementations: { braid: [{ form: ["rotated", "collective"], streams: 2 }], compute_only: [{}] },
        },
      }),
    );
    const first = await cli("bench", "--config", config);
    expect(first.status, first.err).toBe(0);
    expect(first.out.match(/^tp-rowwise m (32|64) n 8 k 16 float, 2 devices$/gm)).toHaveLength(2);
    expect(first.out.match(/^braid \(form=collective, streams=2\)/gm)).toHaveLength(2);
    const second = await cli("bench", "tp-allreduce", "--config", config, "--set", "size=16x4x8", "--impl", "braid");
    expect(second.out.match(/^tp-allreduce m 16 n 4 k 8 float, 2 devices$/gm)).toHaveLength(1);
  });

  it("lets a measured machine choose the schedule, and says which and why", async () => {
    const profile = folder.write("profile.json", JSON.stringify(roundProfile));
    const auto = ["--impl", "braid;scheduleChoice=auto;backend=cuda", "--profile", profile];
    const { status, out, err } = await cli("bench", "tp-columnwise", ...small, ...auto, "--devices", "2");
    expect(status, err).toBe(0);
    const reason =
      /^braid \(scheduleChoice=auto, backend=cuda\): (get|put).* ms, the fastest of \d+ simulated schedules/m;
    expect(err).toMatch(reason);
    expect(out).toMatch(reason);
  });

  it("chooses among the forms of a primitive, the serial one and those in chunks too, and validates what it chose", async () => {
    const profile = folder.write("profile.json", JSON.stringify(roundProfile));
    for (const primitive of everyNth(["tp-allreduce", "tp-rowwise"], 2)) {
      const auto = ["--impl", "braid;scheduleChoice=auto", "--profile", profile, "--check", "--devices", "2"];
      const { status, out, err } = await cli("bench", primitive, ...small, ...auto);
      expect(status, err).toBe(0);
      expect(out).toMatch(/^braid \(scheduleChoice=auto\): .* of \d+ simulated schedules; .*(serial|next)/m);
    }
  });

  it.each(["tp-columnwise", "tp-rowwise", "tp-allreduce"] as const)(
    "has the committed results of %s as a file",
    async (primitive) => {
      const { problems, implementations } = await committedPlan(primitive, primitive);
      expect(problems.map(sizeText)).toContain("m 32768 n 8192 k 16384");
      expect(problems).toHaveLength(6);
      const names = implementations.map(({ name }) => name);
      const paths = primitive === "tp-allreduce" ? ["torch-nccl"] : ["torch-nccl", "torch-async-tp"];
      expect(names).toEqual(expect.arrayContaining(["compute-only", "serial", "torch-compute-only", ...paths]));
      expectCommitted(primitive, implementations);

      // Of sizes that calibration has not.
      const unseen = await committedPlan(primitive, `choice-${primitive}`);
      expect(unseen.problems.map(sizeText)).toEqual(["m 12288 n 4096 k 6144", "m 4096 n 4096 k 4096"]);
      expectCommitted(`choice-${primitive}`, unseen.implementations);
    },
  );

  it.each(["tp-rowwise", "tp-allreduce"] as const)("has the results of %s between two GPUs", async (primitive) => {
    const { problems, implementations } = await committedPlan(primitive, `${primitive}-2-gpus`, 2);
    const { problems: all } = await committedPlan(primitive, primitive);
    expect(problems.map(sizeText)).toEqual(all.map(sizeText));
    expectCommitted(primitive, implementations, "2xH100");
  });

  it("has every option and implementation in the documentation", () => {
    const page = readFileSync(path.resolve(import.meta.dirname, "../../docs/benchmark.md"), "utf8");
    for (const name of [...braidOptionNames, ...implementationNames]) expect(page).toContain(`\`${name}\``);
  });

  it("leaves out combinations that do not exist, and says so", async () => {
    const { status, out, err } = await cli(
      "bench",
      "tp-columnwise",
      ...small,
      "--impl",
      "braid;form=rotated,linear;backend=cuda",
    );
    expect(status).toBe(0);
    expect(err).toContain("left out: braid (form=linear, backend=cuda): p2p linear coalesces");
    expect(out).not.toContain("linear");
  });

  it.each([
    { args: [], expected: ["no primitive to time is given", "braid bench tp-columnwise"] },
    { args: ["tp-diagonal"], expected: ["tp-diagonal", "one of tp-columnwise, tp-rowwise, tp-allreduce"] },
    { args: ["tp-rowwise", "--set", "m=64,many"], expected: ["--set", "found: m=64,many", "like --set m=8192"] },
    { args: ["tp-rowwise", "--set", "size=64x64"], expected: ["--set", "found: size=64x64", "MxNxK"] },
    { args: ["tp-rowwise", "--set", "dtype=float8"], expected: ["--set", "found: dtype=float8", "bfloat16"] },
    { args: ["tp-rowwise", "--devices", "1"], expected: ["--devices", "a whole number of at least 2"] },
    { args: ["tp-rowwise", "--impl", "brad"], expected: ["no implementation brad", "did you mean braid?"] },
    { args: ["tp-rowwise", "--impl", "braid;stream=2"], expected: ["no option stream", "did you mean streams?"] },
    { args: ["tp-rowwise", "--impl", "braid;streams=0"], expected: ["found: streams=0", "at least 1"] },
    { args: ["tp-rowwise", "--impl", "braid;streams=1;streams=2"], expected: ["given twice", "streams=A,B"] },
    { args: ["tp-rowwise", "--impl", "braid;"], expected: ["NAME[;option=value,...]"] },
    { args: ["tp-rowwise", "--impl", "compute-only;streams=2"], expected: ["compute-only has no option streams"] },
    { args: ["tp-rowwise", "--impl", "torch-nccl"], expected: ["torch-nccl runs on GPUs only", "--on cuda"] },
    { args: ["tp-rowwise", "--out", "x.png"], expected: ["--out", ".svg or .html"] },
    {
      args: ["tp-columnwise", "--set", "m=65"],
      expected: ["bad-extent", "at: --set m", "m 65 on 4 devices", "use 64 rows"],
    },
    { args: ["tp-rowwise", "--set", "size=65x8x8"], expected: ["bad-extent", "at: --set size", "m 65 on 4 devices"] },
    { args: ["tp-rowwise", "--impl", "braid;form=linear;backend=cuda"], expected: ["bad-option", "linear coalesces"] },
    { args: ["tp-rowwise", "--impl", "braid;chunks=2"], expected: ["bad-option", "form=collective"] },
    { args: ["tp-columnwise", "--impl", "braid;outputs=2"], expected: ["bad-option", "tp-rowwise or tp-allreduce"] },
    { args: ["tp-rowwise", "--impl", "braid;scheduleChoice=auto"], expected: ["bad-option", "--profile FILE"] },
    {
      args: ["tp-rowwise", "--impl", "braid;scheduleChoice=auto;streams=2;inPlace=true", "--profile", "4xH200"],
      expected: [
        "auto chooses the streams and the rewrites itself",
        "streams (--schedule streams), inPlace (--schedule inPlace)",
      ],
    },
    {
      args: ["tp-rowwise", "--out", "a.csv", "--out", "b.csv"],
      expected: ["--out", "found: b.csv", "a.csv came before"],
    },
    {
      args: ["tp-rowwise", "--set", "rows=4"],
      expected: ["found: rows=4", "some of m, n, k, size, model, cut, pass, dtype"],
    },
    { args: ["tp-rowwise", "--profile", "absent.json"], expected: ["file-unreadable", "absent.json"] },
    { args: ["tp-rowwise", "-o", "absent/x.csv"], expected: ["file-unwritable", "absent/x.csv"] },
    { args: ["tp-rowwise", "--config", "absent.json"], expected: ["file-unreadable", "absent.json"] },
  ])("refuses braid bench $args", async ({ args, expected }) => {
    const { status, out, err } = await cli("bench", ...args);
    expect(status, err).toBe(2);
    for (const part of expected) expect(err).toContain(part);
    expect(err.match(/^error\[/gm)).toHaveLength(1);
    expect(out).toBe("");
  });

  it.each([
    { benchmark: { dtyp: "float" }, expected: ["no entry dtyp", "did you mean dtype?"] },
    { benchmark: { m: "wide" }, expected: ["benchmark.m", 'found: "wide"', "a whole number"] },
    { benchmark: { primitive: "tp" }, expected: ["benchmark.primitive", "tp-columnwise"] },
    { benchmark: { implementations: { braid: [{ streams: [0] }] } }, expected: ["streams=0"] },
    { benchmark: { implementations: { braid: [{ streams: {} }] } }, expected: ["braid.streams", "a number"] },
    {
      benchmark: { implementations: { braid: [{ protocl: "put" }] } },
      expected: ["implementations.braid", "did you mean protocol?"],
    },
    { benchmark: { implementations: { braid: [{ choice: "auto" }] } }, expected: ["braid has no option choice"] },
    { benchmark: [], expected: ["an object", "found: []"] },
  ])("refuses the configuration $benchmark", async ({ benchmark, expected }) => {
    const file = folder.write("bad.json", JSON.stringify({ benchmark }));
    const { status, err } = await cli("bench", "tp-rowwise", "--config", file);
    expect(status, err).toBe(2);
    for (const part of expected) expect(err).toContain(part);
  });
});
