/**
 * `braid run --on cuda` on fake GPUs: with a trace, under the variables of other launchers, and with ranks that have
 * different options.
 */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import { describe, expect, it } from "vitest";
import { checkChromeTrace, type RawTrace } from "../../trace/check-chrome-trace.ts";
import { obstacle, ownFakes } from "./fake/own-fakes.ts";

const root = path.resolve(import.meta.dirname, "../../..");
const main = path.join(root, "dist/cli/main.js");
const command = [main, "run", path.join(root, "test/fixtures/programs/ring-allgather-matmul.ts"), "--on", "cuda"];
/** Heads of 8 elements, cut over the devices. */
const attention = [main, "run", path.join(root, "examples/transformer/attention.ts"), "--on", "cuda", "--devices", "2"];
const small = ["--set", "M=12", "--set", "K=4", "--set", "N=5"];

const fakes = ownFakes(2);

interface Ended {
  readonly status: number | null;
  readonly out: string;
  readonly err: string;
}

function braid(
  args: readonly string[],
  variables: Readonly<Record<string, string>> = {},
  start: readonly string[] = command,
): Promise<Ended> {
  return new Promise((resolve) => {
    // oxlint-disable-next-line node/no-process-env -- what the command inherits
    const env = { ...process.env, ...fakes().env, ...variables };
    const child = execFile(process.execPath, [...start, ...args], { env }, (_, out, err) => {
      resolve({ status: child.exitCode, out, err });
    });
  });
}

const torchrun = (rank: number): Readonly<Record<string, string>> => ({
  RANK: String(rank),
  WORLD_SIZE: "2",
  LOCAL_RANK: String(rank),
  LOCAL_WORLD_SIZE: "2",
  MASTER_ADDR: "127.0.0.1",
  MASTER_PORT: "29500",
  TORCHELASTIC_RUN_ID: `test-${process.pid}`,
});

interface RunDocument {
  readonly milliseconds: readonly number[];
  readonly outputs: readonly { readonly fingerprint: string }[];
}

describe.skipIf(obstacle !== null)("braid run --on cuda", () => {
  it("gives the same results by itself and under torchrun, and a well-formed trace of all ranks", async () => {
    const file = path.join(fakes().folder, "trace.json");
    const flags = [...small, "--backend", "cuda", "--check", "--repeat", "3", "--json"];
    const own = await braid([...flags, "--devices", "2", "--trace", file]);
    expect([own.status, own.err]).toEqual([0, ""]);
    const ranks = await Promise.all([0, 1].map((rank) => braid(flags, torchrun(rank))));
    expect(ranks.map(({ status, err }) => [status, err])).toEqual(Array(2).fill([0, ""]));
    expect(ranks[1]?.out).toBe("");
    const [alone, launched] = [own.out, ranks[0]?.out ?? ""].map((out) => JSON.parse(out) as RunDocument);
    expect(launched?.outputs.map(({ fingerprint }) => fingerprint)).toEqual(
      alone?.outputs.map(({ fingerprint }) => fingerprint),
    );

    const trace = JSON.parse(readFileSync(file, "utf8")) as RawTrace & { readonly otherData?: unknown };
    expect(trace.otherData).toMatchObject({
      clocks: expect.stringMatching(/^times of different ranks fit within [\d.]+ us$/) as string,
      run: { devices: 2, on: "cuda", options: { "--backend": "cuda" } },
    });
    const { slices, arrows } = checkChromeTrace(trace, Number.POSITIVE_INFINITY);
    // A process per rank; thread names are the streams'.
    expect(new Set(slices.map(({ pid }) => pid))).toEqual(new Set([1, 2]));
    const tracks = trace.traceEvents.filter(({ name }) => name === "thread_name").map(({ args }) => args?.["name"]);
    expect(tracks).toEqual(Array(2).fill(["caller", "worker 0", "worker 1", "copy stream"]).flat());
    const named = (cat: string): readonly string[] =>
      slices.filter((slice) => slice.cat === cat).map(({ name }) => name);
    // Each rank multiplies twice, copies its own shard of 6 rows, and reads the other's.
    expect(named("kernel").filter((name) => name.startsWith("matmul"))).toHaveLength(4);
    expect(named("copy").toSorted()).toEqual([
      "copy from rank 0, 96 B",
      "copy from rank 1, 96 B",
      "copy, 96 B",
      "copy, 96 B",
    ]);
    // Where a stream stands is a wait, from when it came there; the taking of what it waited for takes no time.
    const beginOf = (pid: number): number =>
      Math.min(...slices.flatMap((slice) => (slice.pid === pid && slice.cat === "order" ? [slice.start] : [])));
    const waits = slices.filter(({ cat }) => cat === "wait");
    expect(waits.some(({ name }) => name.startsWith("wait for slot"))).toBe(true);
    expect(waits.filter(({ pid, start }) => start < beginOf(pid))).toEqual([]);
    const taken = slices.filter(({ name }) => /^wait(Event|Signal) /.test(name));
    expect(taken.filter(({ start, end }) => end - start > 1)).toEqual([]);
    const crossing = arrows.filter(({ name, from, to }) => name === "signal" && from.pid !== to.pid);
    expect(crossing.length).toBeGreaterThan(0);
  }, 60_000);

  it("runs attention by cuDNN, heads over devices, and says where it does not", async () => {
    const flags = ["--backend", "cuda", "--schedule", "attention=auto", "--check", "--set", "L=8", "--set", "H=64"];
    const fused = await braid([...flags, "--set", "DTYPE=bfloat16"], {}, attention);
    expect([fused.status, fused.err]).toEqual([0, ""]);
    const calls = readFileSync(path.join(fakes().folder, "calls"), "utf8").split("\n");
    // Two chunks forward and one backward per run and rank.
    expect(calls.filter((call) => call === "cudnnBackendExecute").length).toBeGreaterThanOrEqual(6);
    const ops = await braid([...flags, "--graph", "off", "--set", "BACKWARD=0"], {}, attention);
    expect([ops.status, ops.err.match(/^note\[gpu-unsupported\]: .*$/gm)]).toEqual([
      0,
      ["note[gpu-unsupported]: attention runs as matmuls and a softmax"],
    ]);
    expect(ops.err).toContain("  found: float\n  expected: half or bfloat16\n");
  }, 120_000);

  it("names the option that differs where ranks were given different ones", async () => {
    const flags = [
      ["--schedule", "protocol=get,inPlace"],
      ["--schedule", "protocol=put"],
    ];
    const ranks = await Promise.all(
      flags.map((own, rank) => braid([...small, "--backend", "cuda", ...own], torchrun(rank))),
    );
    expect(ranks.map(({ status, out }) => [status, out])).toEqual(Array(2).fill([2, ""]));
    const [err = "", other] = ranks.map((rank) => rank.err);
    expect(err).toContain("error[program-differs]: rank 1 has a different program than rank 0");
    expect(err).toMatch(/found: hash [0-9a-f]{16} on rank 1, [0-9a-f]{16} on rank 0/);
    expect(err).toContain("note: --schedule: as-written, on rank 0: inPlace\n");
    expect(err).toContain("note: --schedule protocol: put, on rank 0: get\n");
    // All ranks know it, and one says it.
    expect(other).toBe("");
  }, 60_000);

  it("names the command and rank of a failed call, and ends all ranks", async () => {
    // The fake NCCL takes no message of as many bytes as the example has.
    const { status, out, err } = await braid(["--backend", "nccl", "--devices", "2"]);
    expect([status, out]).toEqual([3, ""]);
    expect(err).toMatch(
      /^error\[gpu-call-failed\]: ncclGroupEnd failed on rank ([01])\n {2}at: rank \1, stream \d+: command \d+, transfer /,
    );
    expect(err).toContain("  found: a fake NCCL error (4)\n");
    expect(err).toContain("  note: in the call ncclGroupEnd\n");
  }, 60_000);
});
