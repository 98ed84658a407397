/** Output and exit status of `braid explain`. */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { getOrMake } from "../../src/support/invariant.ts";
import { cli, type CliRun, programFolder } from "./captured-cli.ts";
import { ownFolder } from "./own-folder.ts";

const example = path.resolve(import.meta.dirname, "../../examples/matmul-reduce-scatter.ts");
const dump = path.resolve(import.meta.dirname, "../fixtures/dumps");

const onFour = ["explain", example, "--devices", "4", "--profile", "4xH200"];
const large = ["--set", "M=8192,K=8192,N=8192"];
const known = new Map<string, Promise<CliRun>>();

/** On 4 GPUs, as written; several tests read one run. */
function asWritten(...flags: readonly string[]): Promise<CliRun> {
  return getOrMake(known, flags.join(" "), () => cli(...onFour, "--schedule", "as-written", ...flags));
}

it("prints a verdict, regions, and causes that add up", async () => {
  const { status, out } = await asWritten("--json");
  expect(status).toBe(0);
  const found: unknown = JSON.parse(out);
  expect(found).toMatchObject({ devices: 4, on: "cuda", regions: [{ isLoop: true, chunks: 4 }] });
  const { causes, exposed, milliseconds, floor } = found as {
    readonly causes: readonly { readonly milliseconds: number }[];
    readonly exposed: number;
    readonly milliseconds: number;
    readonly floor: { readonly milliseconds: number };
  };
  expect(causes.reduce((sum, { milliseconds: time }) => sum + time, 0)).toBeCloseTo(exposed, 9);
  expect(milliseconds).toBeGreaterThanOrEqual(floor.milliseconds);
  const text = await asWritten();
  expect(text.out).toMatch(
    / us \(90 %: [\d.]+ us to [\d.]+ us\) predicted on 4 devices; [\d.]+ % of communication hidden; [\d.]+ \w+ exposed\n/,
  );
  expect(text.out).toMatch(/^exposed because of +time +of the run$/m);
});

it("--print timeline draws the predicted streams of the rank that ends last", async () => {
  const { status, out } = await asWritten("--print", "timeline");
  expect(status).toBe(0);
  expect(out).toMatch(/^worker 0 +[k.]+ +[\d.]+ ms$/m);
  expect(out).toMatch(/^NCCL \(0 1 2 3\) +[tw.]+ +[\d.]+ ms$/m);
  expect(out).toMatch(/^rank \d: kernels .* \d+ % of communication under kernels$/m);
});

it("explains the chosen schedule", async () => {
  const given = ["explain", example, "--devices", "2", "--profile", "2xH200", "--schedule", "auto"];
  const { status, out } = await cli(...given, "--json");
  expect(status).toBe(0);
  const { considered, milliseconds, scheduleChoice } = JSON.parse(out) as {
    readonly considered: readonly { readonly name: string; readonly milliseconds: number; readonly flags: string }[];
    readonly milliseconds: number;
    readonly scheduleChoice: string;
  };
  expect(considered.length).toBeGreaterThan(2);
  expect(milliseconds).toBeLessThanOrEqual(1.05 * Math.min(...considered.map((each) => each.milliseconds)));
  const chosen = considered.find(({ name }) => scheduleChoice.startsWith(`${name}:`));
  const byHand = await cli(...given.slice(0, -2), "--json", ...(chosen?.flags.split(" ") ?? []));
  expect(JSON.parse(byHand.out)).toMatchObject({ milliseconds });
});

it("gives no advice against the schedule that it chose", async () => {
  const { out } = await cli(...onFour, "--set", "M=64", "--schedule", "auto");
  expect(out).toMatch(/^schedule: no loop: /m);
  expect(out).toMatch(/^not in a loop +[\d.]+ us/m);
  expect(out).not.toContain("to change:");
});

it("says what to change", async () => {
  const [few, all] = [await asWritten(...large), await asWritten(...large, "--print", "all")];
  expect(few.out).toMatch(/^to change:\n {2}[\d.]+ % faster, [\d.]+ \w+ +--\w/m);
  expect(few.out).not.toContain("slower");
  expect(all.out).toMatch(/^ {2}[\d.]+ % \w+, [\d.]+ \w+ +--set S=\d+$/m);
});

it("says that sizes are too small, instead of advice", async () => {
  const small = await asWritten();
  expect(small.out).toMatch(/^too small to judge: \d\d\.\d % of the serial time is latency/m);
  expect(small.out).toMatch(/^to change: the sizes/m);
  expect(small.out).not.toContain("faster");
  expect((await asWritten("--print", "all")).out).toContain("faster");
  expect((await asWritten(...large)).out).not.toContain("too small");
});

it("names the rule that kept a collective out of a loop", async () => {
  const { status, out } = await cli(...onFour, "--schedule", "as-written,overlap=false");
  expect(status).toBe(0);
  expect(out).toMatch(
    /^not in a loop: y = sum\(partial sum of y\), beside T\d+ = add\(y, residual\) \(.*\): the option overlap is off/m,
  );
  // Without a measured gain there is no advice.
  expect(out).not.toContain("without --schedule overlap=false");
});

it("explains one of several groups that do the same, or with --print all every rank", async () => {
  const llama = path.resolve(import.meta.dirname, "../../examples/hosts/llama.ts");
  const given = ["--devices", "4", "--devices-per-host", "2", "--profile", "8xH100"];
  const explain = async (layers: number, ...flags: readonly string[]): Promise<string> =>
    (await cli("explain", llama, "--set", `B=2,LAYERS=${layers}`, ...given, ...flags)).out;
  const [one, all] = [await explain(1), await explain(1, "--print", "all")];
  const replicas = "\nreplicas: 4 devices do the same; one is explained\n";
  expect(one).toContain(replicas);
  const groups = "\nreplicas: 2 groups of 2 devices do the same; one is explained\n";
  expect(await explain(1, "--backend", "cuda", "--schedule", "as-written")).toContain(groups);
  expect(await explain(13)).toContain(`${replicas}layers: 9 of the equal ones`);
  expect(all).not.toContain("replicas");
  const verdict = (text: string): string => text.split("\n").slice(0, 2).join("\n");
  expect(verdict(one)).toBe(verdict(all));
});

it("needs a profile, and names those that come with Braid", async () => {
  const { status, err } = await cli("explain", example);
  expect(status).toBe(2);
  expect(err).toContain("error[option-value]: a prediction needs the profile of a machine");
  expect(err).toContain("4xH200");
  const unknown = await cli("explain", example, "--profile", "9xH200");
  expect(unknown).toMatchObject({ status: 2 });
  expect(unknown.err).toContain("error[file-unreadable]");
});

it.each([
  ["a profile of GPUs for the CPU", [example, "--on", "cpu"], "option-value", "leave --on out"],
  ["a dump without sizes", [`${dump}/e2-allreduce.hir`], "size-missing", "add --sizes "],
])("refuses %s with the fix", async (_, asked, code, fix) => {
  const { status, err } = await cli("explain", ...asked, "--profile", "4xH200");
  expect(status).toBe(2);
  expect(err.match(/^error\[/gm)).toHaveLength(1);
  expect(err).toContain(`error[${code}]`);
  expect(err).toContain(`fix: ${fix}`);
});

it("refuses a profile that says that it is of another back end", async () => {
  const shipped = readFileSync(path.resolve(example, "../../profiles/4xH200.json"), "utf8");
  // Its machine may be called anything.
  const unnamed = shipped.replace(/"machine": ".*"/u, '"machine": "mine"');
  const folder = programFolder();
  try {
    const gpus = folder.write("gpus.json", unnamed);
    const cpu = folder.write("cpu.json", unnamed.replace('"on": "cuda"', '"on": "cpu"'));
    for (const [file, on, fix] of [
      [gpus, "cpu", "leave --on out, or measure the CPU"],
      [cpu, "cuda", "leave --on out, or name a profile of GPUs"],
    ] as const) {
      const { status, err } = await cli("explain", example, "--on", on, "--profile", file);
      expect(status).toBe(2);
      expect(err.match(/^error\[option-value\]/gm)).toHaveLength(1);
      expect(err).toContain(`fix: ${fix}`);
      // Without --on it is the profile that says where the program runs.
      expect(await cli("explain", example, "--profile", file)).toMatchObject({ status: 0, err: "" });
    }
    // Runs over MPI are a CPU's too.
    expect(await cli("explain", example, "--on", "mpi", "--profile", cpu)).toMatchObject({ status: 0, err: "" });
  } finally {
    folder.remove();
  }
});

it("explains a dump, against its own kernels", async () => {
  const { status, out } = await cli("explain", `${dump}/draft-allgather-linear.hir`, "--profile", "4xH200", "--json");
  expect(status).toBe(0);
  expect(JSON.parse(out)).toMatchObject({ serial: null });
});

describe("a measured run", () => {
  const folder = ownFolder();

  const asked = [example, "--devices", "2", "--set", "M=64"];

  it("is explained by run --print explain, and from its trace by explain --trace", async () => {
    const file = path.join(folder.path, "trace.json");
    const ran = await cli("run", ...asked, "--print", "explain", "--trace", file, "--json");
    expect([ran.status, ran.err]).toEqual([0, ""]);
    const { explain } = JSON.parse(ran.out) as { readonly explain: ExplainDocument };
    expect(explain).toMatchObject({ measured: true, predicted: null, on: "cpu" });
    const sum = (causes: ExplainDocument["causes"]): number => causes.reduce((all, each) => all + each.milliseconds, 0);
    expect(sum(explain.causes)).toBeCloseTo(explain.exposed, 9);
    // Devices and the back end are the trace's.
    const read = await cli("explain", example, "--set", "M=64", "--trace", file, "--json");
    expect([read.status, read.err]).toEqual([0, ""]);
    const again = JSON.parse(read.out) as ExplainDocument;
    expect(again).toMatchObject({ measured: true, devices: 2, on: "cpu", rank: explain.rank });
    expect(again.milliseconds).toBeCloseTo(explain.milliseconds, 6);
    const ofCpu = path.join(folder.path, "cpu.json");
    const shipped = readFileSync(path.resolve(example, "../../profiles/4xH200.json"), "utf8");
    const inFloat = shipped.replaceAll('"dtype": "bfloat16"', '"dtype": "float"');
    writeFileSync(ofCpu, inFloat.replace(/"machine": "[^"]*",\n +"on": "cuda"/u, '"machine": "a CPU", "on": "cpu"'));
    const beside = await cli("explain", example, "--set", "M=64", "--trace", file, "--profile", ofCpu);
    expect(beside.out).toMatch(
      / measured on 2 devices \([\d.]+ us predicted, 90 %: [\d.]+ us to [\d.]+ us\); .* exposed \([\d.]+ us predicted\)\n/,
    );
    expect(beside.out).toMatch(/^exposed because of +time +of the run +predicted$/m);
    const other = await cli("explain", example, "--set", "M=64", "--trace", file, "--schedule", "streams=3");
    expect(other.status).toBe(2);
    expect(other.err).toContain("error[trace-mismatch]");
    expect(other.err).toContain("note: --schedule streams: 4, here: 3\n");
    expect(other.err).not.toContain("--devices:");
    const ofGpus = await cli("explain", example, "--set", "M=64", "--trace", file, "--profile", "2xH100");
    expect(ofGpus.err).toContain("the profile is of GPUs, and the trace is of a run on the CPU");
    expect(ofGpus.err).not.toContain("--on cpu\n");
    // A trace in place of a program, or beside it.
    for (const [files, typed] of [
      [[file], "FILE"],
      [[example, file], example],
    ] as const) {
      const { status, err } = await cli("explain", ...files);
      expect([status, err]).toEqual([2, expect.stringContaining(`: braid explain ${typed} --trace ${file}`)]);
    }
    expect((await cli("verify", file)).err).toContain(`braid explain FILE --trace ${file}`);
  });

  it("needs a trace of braid run, and real threads", async () => {
    const missing = await cli("explain", ...asked, "--trace", path.join(folder.path, "none.json"));
    expect(missing).toMatchObject({ status: 2 });
    expect(missing.err).toContain("error[file-unreadable]: the trace cannot be read");
    const taken = await cli("run", ...asked, "--print", "explain", "--interleaving", "seed:1");
    expect(taken).toMatchObject({ status: 2 });
    expect(taken.err).toContain("fix: remove --interleaving");
  });
});

interface ExplainDocument {
  readonly milliseconds: number;
  readonly rank: number;
  readonly exposed: number;
  readonly causes: readonly { readonly milliseconds: number }[];
}

it("says which attention is no kernel of its own, as run does, unless it was asked for", async () => {
  const attention = path.resolve(import.meta.dirname, "../../examples/transformer/attention.ts");
  const asked = ["explain", attention, "--devices", "2", "--profile", "4xH200", "--set", "BACKWARD=0", "--schedule"];
  const explained = (schedule: string) => cli(...asked, schedule);
  const { err } = await explained("as-written");
  expect(err).toMatch(/^note\[gpu-unsupported\]: attention runs as matmuls and a softmax\n/u);
  const [, fix = ""] = /--schedule (\S+) for the same without this note/u.exec(err) ?? [];
  expect((await explained(fix)).err).toBe("");
  const layers = path.resolve(import.meta.dirname, "../../examples/hosts/llama.ts");
  const ofLayers = [layers, "--set", "BACKWARD=0", "--devices", "2", "--profile", "4xH200", "--schedule", "as-written"];
  const { err: ofTwo } = await cli("explain", ...ofLayers);
  expect(ofTwo.match(/^note.*$/gmu)).toEqual(["note[gpu-unsupported]: 2 x attention runs as matmuls and a softmax"]);
});

it("of a run on the CPU says that commands wait for cores, not that launches take their time", async () => {
  const { status, out } = await cli("run", example, "--devices", "4", "--print", "explain", "--json");
  expect(status).toBe(0);
  const { explain } = JSON.parse(out) as {
    readonly explain: { readonly causes: readonly { readonly cause: string; readonly sentence: string }[] };
  };
  const latency = explain.causes.find(({ cause }) => cause === "latency");
  expect(latency?.sentence).toBe("Commands wait for a free core, and starting them takes time itself.");
});
