/**
 * Every diagnostic code: a smallest program that raises it and the same with the fix typed, which no longer does; or the
 * tests that type its fixes; or why there is nothing to type.
 */
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { shardedModel } from "../../src/import/plan/apply-plan.ts";
import { parsePlan } from "../../src/import/plan/parse-plan.ts";
import { sourceOfBytes } from "../../src/import/byte-source.ts";
import { compareTorchRecords } from "../../src/import/flight-records/compare-records.ts";
import { readTorchRecord } from "../../src/import/flight-records/torch-record.ts";
import { readExportedProgram } from "../../src/import/torch-export/read.ts";
import { modelFile } from "../import/torch-export/written-model.ts";
import {
  add,
  compile,
  cumsum,
  DeviceMesh,
  type Diagnostic,
  type DiagnosticCode,
  DiagnosticError,
  diagnosticCodes,
  dynamicUpdate,
  Fusion,
  gradients,
  groupedMatmul,
  HostProgramBuilder,
  importModel,
  iota,
  link,
  lower,
  matmul,
  MultiDeviceExecutor,
  parse,
  parseProfile,
  print,
  type Program,
  record,
  relu,
  select,
  sum,
  Tensor,
  type TensorView,
  verify,
} from "@braid-compiler/braid";
import {
  convertOpToCommunication as convertToCommunication,
  runPass,
  streamParallelType as streamLoops,
} from "@braid-compiler/braid/internals";
import { parseInterleaving } from "@braid-compiler/braid/cpu";
import { requireInputMemory } from "../../src/compile/program/inputs.ts";
import { badPrograms } from "../host/bad-programs.ts";
import { dumpAdvice } from "../host/parse/dump-advice.ts";
import { changed, planOf, read, ring } from "../plan/plans.ts";
import { badAnnotations } from "../passes/bad-annotations.ts";
import { checked, convertOpToCommunication, streamParallelType } from "../passes/refused-programs.ts";
import { machineRows } from "./machine-rows.ts";
import { processRows } from "./process-rows.ts";
import { keysOf } from "../../src/support/invariant.ts";

interface Typed {
  readonly kind: "typed";
  /** What the fix says. */
  readonly help: RegExp;
  /** Throws the diagnostic; with `isFixed`, as the fix says, nothing. */
  readonly program: (isFixed: boolean) => unknown;
}

/** Programs that a diagnostic of more than one fix has. */
interface TypedEach {
  readonly kind: "typed each";
  readonly programs: readonly Omit<Typed, "kind">[];
}

type Row =
  | Typed
  | TypedEach
  /** Rows of test/passes/bad-annotations.ts or refused-programs.ts type its fixes. */
  | { readonly kind: "annotations" }
  /** A finding, of which test/fixtures/findings has an example; counterexamples.test.ts repairs missing orders. */
  | { readonly kind: "repairs" }
  /** Rows of test/host/bad-programs.ts type its fixes. */
  | { readonly kind: "host programs" }
  /** Rows of test/host/parse/dump-advice.ts type its fixes. */
  | { readonly kind: "dumps" }
  /** test/cli/typed-fixes.long.test.ts or typed-file-fixes.long.test.ts types its fixes. */
  | { readonly kind: "command line" }
  /** Rows of machine-rows.ts or process-rows.ts type its fixes. */
  | { readonly kind: "machine" }
  /** There is nothing to type, for this reason. */
  | { readonly kind: "untyped"; readonly why: string };

const annotations = { kind: "annotations" } as const;
const repairs = { kind: "repairs" } as const;
const hostPrograms = { kind: "host programs" } as const;
const dumps = { kind: "dumps" } as const;
const commandLine = { kind: "command line" } as const;
const machine = { kind: "machine" } as const;
const untyped = (why: string): Row => ({ kind: "untyped", why });
const typed = (help: RegExp, program: Typed["program"]): Row => ({ kind: "typed", help, program });

const typedEach = (...programs: readonly (readonly [help: RegExp, program: Typed["program"]])[]): Row => ({
  kind: "typed each",
  programs: programs.map(([help, program]) => ({ help, program })),
});

const two = DeviceMesh.range(2);

function lowered(build: (f: Fusion) => TensorView): void {
  const f = new Fusion();
  f.output(build(f));
  lower(f);
}

function recorded(build: (h: HostProgramBuilder, x: TensorView) => void): void {
  const h = new HostProgramBuilder();
  build(h, h.input([4], { mesh: two, dtype: "float" }));
  record(h.build(), { rank: 0 });
}

function symbolic(sizes: Readonly<Record<string, number>>): void {
  const f = new Fusion();
  f.output(add(f.input([null]), f.input([null])));
  compile(f, { devices: 1, sizes });
}

/** The same host program on each of two ranks. */
function onTwo(mesh: DeviceMesh, devices: number): void {
  const f = new Fusion();
  const x = f.input([4]);
  x.setDeviceMesh(mesh);
  f.output(relu(x));
  compile([lower(f), lower(f)], { devices });
}

/** Options as of JavaScript, where no types refuse them. */
function compiled(options: string): void {
  const f = new Fusion();
  f.output(relu(f.input([4])));
  compile(f, { devices: 1, ...(JSON.parse(options) as object) });
}

function dumped(edit: (dump: string) => string): void {
  const f = new Fusion();
  f.output(relu(f.input([4])));
  parse(edit(print(lower(f))));
}

const model = `func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.tanh %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}`;

async function imported(text: string): Promise<void> {
  await importModel(text);
}

/** A model of one linear map, planned. */
function planned(pattern: string): void {
  const bytes = modelFile({
    inputs: { x: ["float", [2, 3]] },
    parameters: { "up.weight": Tensor.zeros([4, 3]) },
    nodes: [
      {
        op: "linear.default",
        inputs: { input: "x", weight: "up_weight" },
        outputs: { y: ["float", [2, 4]] },
        module: "up",
      },
    ],
    outputs: ["y"],
  });
  const plan = JSON.stringify({ mesh: { tp: 2 }, [pattern]: "colwise" });
  shardedModel(readExportedProgram(sourceOfBytes(bytes)), parsePlan(plan, "plan.json"));
}

/** Sums of x, which each of the two devices has rows of. */
async function ran(input: Tensor | readonly Tensor[] | null): Promise<void> {
  const f = new Fusion();
  const x = f.input([3, 2]);
  x.setDeviceMesh(two);
  x.outerSplit(0, 2).parallelize("DIDx");
  f.output(sum(x, [1]));
  const executor = await MultiDeviceExecutor.create(f, { devices: 2 });
  try {
    await executor.run(input === null ? [] : [input]);
  } finally {
    await executor.close();
  }
}

/** Runs on one device. */
async function executed(
  build: (f: Fusion) => TensorView,
  inputs: readonly Tensor[],
  options: { readonly timeout?: number } = {},
): Promise<void> {
  const f = new Fusion();
  f.output(build(f));
  const executor = await MultiDeviceExecutor.create(f, { devices: 1, ...options });
  try {
    await executor.run(inputs);
  } finally {
    await executor.close();
  }
}

/** Writes two elements from position 3 on. */
async function updated(extent: number, position: number): Promise<void> {
  await executed(
    (f) => dynamicUpdate(f.input([extent]), 0, f.input([], "int64"), f.input([2])),
    [Tensor.zeros([extent]), Tensor.from(BigInt(position), "int64"), Tensor.zeros([2])],
  );
}

/** Two allreduces of two communicators, whose order on rank 1 is the other if `crosses`. */
async function reduced(crosses: boolean): Promise<void> {
  const lists = [0, 1].map((rank) => {
    const h = new HostProgramBuilder();
    const teams = [
      [0, 1],
      [1, 0],
    ] as const;
    const inputs = teams.map(() => h.input([4], { mesh: two }));
    for (const i of crosses && rank === 1 ? [1, 0] : [0, 1]) {
      const [input, team] = [inputs[i], teams[i]];
      if (input !== undefined && team !== undefined)
        h.wait(h.communication("Allreduce", { team, input, output: input }));
    }
    return h.build();
  });
  const executor = await MultiDeviceExecutor.create(lists, { devices: 2, verify: "off" });
  try {
    await executor.run([Tensor.zeros([4]), Tensor.zeros([4])]);
  } finally {
    await executor.close();
  }
}

/** Records of ranks without entries. */
function recordsOf(...paths: readonly string[]): void {
  const text = new TextEncoder().encode('{"version": "2.10", "pg_config": {}, "entries": []}');
  compareTorchRecords(paths.map((file) => readTorchRecord(text, file)));
}

function linked(ranks: readonly number[]): Program {
  const h = new HostProgramBuilder();
  const x = h.input([4], { mesh: two });
  h.wait(h.communication("Allreduce", { input: x, output: x }));
  return link(ranks.map((rank) => record(h.build(), { rank })));
}

/** The same unit on one rank: with a size of its own, or that of the input. */
function unitOf(build: (f: Fusion, x: TensorView) => TensorView, isPosted: boolean): void {
  const f = new Fusion();
  f.output(build(f, f.input([4], "int64")));
  const h = new HostProgramBuilder();
  const positions = isPosted ? h.input([4], { dtype: "int64" }) : h.iota(4);
  h.output(h.postOnStream(f, [positions])[0] ?? positions);
  record(h.build(), { rank: 0 });
}

async function readPlan(isFixed: boolean, from: string, to: string): Promise<void> {
  const made = planOf(ring());
  await read(isFixed ? made : changed(made, "plan.json", (text) => text.replace(from, to)));
}

const profile = readFileSync(new URL("../../profiles/2xH100.json", import.meta.url), "utf8");

const table: { readonly [C in DiagnosticCode]: Row } = {
  "axis-out-of-range": annotations,
  "axis-repeated": annotations,
  "shape-mismatch": annotations,
  "dtype-mismatch": typed(/./u, (isFixed) =>
    lowered((f) => matmul(f.input([4, 4]), f.input([4, 4], isFixed ? "float" : "half"))),
  ),
  "alias-invalid": typed(/./u, (isFixed) =>
    lowered((f) => {
      const x = f.input([4]);
      f.output(add(x, 1), { alias: isFixed ? x : add(x, x) });
      return f.input([4]);
    }),
  ),
  "bad-extent": annotations,
  "bad-argument": annotations,
  "foreign-tensor": typed(/input of this Fusion/u, (isFixed) =>
    lowered((f) => add(f.input([4]), (isFixed ? f : new Fusion()).input([4]))),
  ),
  "mesh-duplicate-device": annotations,
  "mesh-bad-device": annotations,
  "mesh-not-rectangular": annotations,
  "mesh-bad-name": annotations,
  "mesh-axis-missing": annotations,
  "mesh-missing": annotations,
  "mesh-too-large": annotations,
  "did-repeated": annotations,
  "stream-repeated": annotations,
  "size-contradicts-mesh": annotations,
  "not-differentiable": typed(/./u, (isFixed) => {
    const f = new Fusion();
    const [x, n] = [f.input([4]), f.input([4], "int64")];
    const loss = sum(x, [0]);
    f.output(loss);
    gradients(f, { of: [loss], wrt: [isFixed ? x : n] });
  }),
  "no-output": typed(/fusion\.output\(tv\)/u, (isFixed) => {
    const f = new Fusion();
    const x = relu(f.input([4]));
    if (isFixed) f.output(x);
    lower(f);
  }),
  "resharding-unsupported": annotations,
  "annotations-conflict": annotations,
  "indexed-axis-gathered": annotations,
  "stream-on-input": annotations,
  "stream-keeps-whole": annotations,
  "stream-on-split-axis": annotations,
  "stream-on-reduction-axis": annotations,
  "stream-on-matmul-axis": annotations,
  "stream-on-cut-axis": annotations,
  "stream-on-host-unit": annotations,
  "did-on-merged-axis": annotations,
  "point-to-point-unsupported": annotations,
  "bad-option": annotations,
  "host-program-invalid": hostPrograms,
  "pass-validation": typed(/run the passes in their order/u, (isFixed) => {
    const h = new HostProgramBuilder();
    const y = h.tensor([2, 8], { mesh: two });
    h.output(h.set(h.input([2, 8], { mesh: two, parallel: ["DIDx"] }), { out: y }));
    const z = h.set(y);
    h.output(z);
    z.setDeviceMesh(two);
    z.axis(0).parallelize("Stream");
    const program = h.build();
    runPass(convertToCommunication, isFixed ? runPass(streamLoops, program) : program);
  }),
  "kernel-opaque": typed(/move it out of the unit/u, (isFixed) => {
    unitOf((f, x) => add(x, isFixed ? x : iota(f, 4)), isFixed);
  }),
  "dump-syntax": typed(/./u, (isFixed) => dumped((dump) => (isFixed ? dump : dump.replace(" -> (", " -> ")))),
  "dump-unsupported": dumps,
  "dump-incomplete": dumps,
  "dump-contradiction": dumps,
  "sharding-plan-invalid": typed(/did you mean up/u, (isFixed) => planned(isFixed ? "up" : "upp")),
  "model-syntax": typed(/as the framework printed it/u, (isFixed) => imported(isFixed ? model : model.slice(0, -2))),
  "model-unsupported": typed(/did you mean stablehlo.tanh/u, (isFixed) =>
    imported(isFixed ? model : model.replace("tanh", "tan_h")),
  ),
  "model-invalid": typed(/as the framework printed it/u, (isFixed) =>
    imported(isFixed ? model : model.replace("return %0", "return %1")),
  ),
  "dump-container": typed(/./u, (isFixed) => dumped((dump) => (isFixed ? dump : "T0"))),
  "size-missing": typed(/give i2 a size/u, (isFixed) => symbolic(isFixed ? { i0: 4, i2: 4 } : { i0: 4 })),
  "size-unknown": commandLine,
  "size-mismatch": typed(/./u, (isFixed) => symbolic({ i0: 4, i2: isFixed ? 4 : 6 })),
  "scalar-missing": hostPrograms,
  "scalar-invalid": hostPrograms,
  "allocation-on-split-axis": typed(/reshape the tensor/u, (isFixed) =>
    recorded((h) => {
      const x = h.input(isFixed ? [2, 4] : [8]);
      if (!isFixed) x.split(0, 4);
      x.setAllocationDomain([1, 0]);
    }),
  ),
  "index-out-of-range": typed(/choose an index inside the axis/u, (isFixed) =>
    lowered((f) => select(f.input([4, 2]), 0, isFixed ? 3 : 4)),
  ),
  "not-posted": hostPrograms,
  "not-shared": hostPrograms,
  "already-waited": typed(/remove the second Wait/u, (isFixed) =>
    recorded((h, x) => {
      const posted = h.send(x, { peer: 1 });
      h.wait(posted);
      if (!isFixed) h.wait(posted);
    }),
  ),
  "not-bound": typed(/add the rank to the mesh/u, (isFixed) => onTwo(isFixed ? two : DeviceMesh.range(1), 2)),
  "recording-too-long": typedEach(
    [
      /check the bounds/u,
      (isFixed) =>
        recorded((h) => {
          h.forLoop(isFixed ? 2 : 2 ** 21, () => {});
        }),
    ],
    [
      /let iterations share streams/u,
      (isFixed) =>
        recorded((h) => {
          h.forLoop(1100, (i) => {
            h.setCurrentStream(h.stream(isFixed ? h.scalars.mod(i, 4) : i));
          });
        }),
    ],
  ),
  "bad-peer": typed(/expression of the peer/u, (isFixed) =>
    recorded((h, x) => {
      h.wait(h.recv(x, { peer: isFixed ? 1 : h.scalars.sub(h.scalars.rank, 1) }));
    }),
  ),
  "transfer-mismatch": repairs,
  "transfer-unclear": repairs,
  "rank-missing": typed(/record the program once for every rank/u, (isFixed) => linked(isFixed ? [0, 1] : [0, 0])),
  "memory-limit": typed(/use smaller sizes/u, (isFixed) => {
    const f = new Fusion();
    f.output(relu(f.input([null])));
    requireInputMemory(f.data(), new Map([["i0", isFixed ? 4 : 2 ** 31]]));
  }),
  "program-malformed": typed(/take Programs from compile, link and rewrites/u, (isFixed) => {
    const program = linked([0, 1]);
    const { findings } = verify(isFixed ? program : { ...program, buffers: [] });
    if (findings.length > 0) throw new DiagnosticError(findings);
  }),
  "data-race": repairs,
  "transfer-not-waited": repairs,
  "unwritten-read": repairs,
  deadlock: repairs,
  "needs-concurrency": repairs,
  "signal-unbalanced": repairs,
  "event-not-recorded": repairs,
  "event-recorded-twice": repairs,
  "used-before-alloc": repairs,
  "used-after-free": repairs,
  "freed-in-use": repairs,
  "freed-twice": repairs,
  "allocated-twice": repairs,
  "memory-shared": repairs,
  "outside-buffer": repairs,
  "operands-overlap": repairs,
  "redundant-synchronization": repairs,
  "iterations-serialized": repairs,
  "buffer-leaked": repairs,
  "state-copied": typed(/./u, (isFixed) => {
    const f = new Fusion();
    const x = f.input([4]);
    const next = add(x, 1);
    f.output(next, { alias: x });
    f.output(add(sum(next, [0]), sum(isFixed ? next : x, [0])));
    const { findings } = compile(f, { devices: 1 }).report;
    if (findings.length > 0) throw new DiagnosticError(findings);
  }),
  "input-count": typed(/pass one tensor/u, (isFixed) => ran(isFixed ? Tensor.zeros([3, 2]) : null)),
  "input-shape": typedEach(
    [/expected dtype/u, (isFixed) => ran(Tensor.zeros([3, 2], isFixed ? "float" : "half"))],
    [/expected number of axes/u, (isFixed) => ran(Tensor.zeros(isFixed ? [3, 2] : [6]))],
    [/pass a tensor of/u, (isFixed) => ran(Tensor.zeros(isFixed ? [3, 2] : [4, 2]))],
    [
      /pass the shard of the expected shape/u,
      (isFixed) => ran([Tensor.zeros([isFixed ? 2 : 1, 2]), Tensor.zeros([isFixed ? 1 : 2, 2])]),
    ],
    [
      /or the whole tensor/u,
      (isFixed) => ran(isFixed ? Tensor.zeros([3, 2]) : [Tensor.zeros([1, 2]), Tensor.zeros([2, 2])]),
    ],
  ),
  "device-count": typed(/./u, (isFixed) => onTwo(two, isFixed ? 2 : 3)),
  "host-programs-differ": typed(/declare the same inputs and outputs/u, (isFixed) => {
    const lists = [0, 1].map((rank) => {
      const h = new HostProgramBuilder();
      h.output(h.set(h.input([rank === 0 || isFixed ? 4 : 8], { mesh: two })));
      return h.build();
    });
    compile(lists, { devices: 2 });
  }),
  "profile-invalid": typedEach(
    [
      /did you mean latency|leave it out/u,
      (isFixed) => parseProfile(isFixed ? profile : profile.replace("{", '{ "extra": 1,'), "profile.json"),
    ],
    [
      /correct the value/u,
      (isFixed) => parseProfile(isFixed ? profile : profile.replace(/: \d[\d.]*/u, ": -1"), "profile.json"),
    ],
  ),
  "trace-invalid": commandLine,
  "trace-mismatch": commandLine,
  "record-invalid": typedEach(
    [/name the file after its rank/u, (isFixed) => recordsOf(isFixed ? "trace_0.json" : "trace.json", "trace_1.json")],
    [/pass one of them/u, (isFixed) => recordsOf(...(isFixed ? ["0.json"] : ["0.json", "old/0.json"]))],
  ),
  "record-incomplete": machine,
  "file-unreadable": commandLine,
  "plan-unsupported": typed(/compile with --backend cuda/u, (isFixed) => planOf(ring(2, isFixed ? "cuda" : "nccl"))),
  "plan-unverified": typed(/make it again/u, (isFixed) => readPlan(isFixed, '"ok":true', '"ok":false')),
  "plan-version": typed(/make it again/u, (isFixed) => readPlan(isFixed, '"version": 2', '"version": 1')),
  "plan-invalid": typed(/make the plan again/u, (isFixed) => readPlan(isFixed, '"world": 2', '"world": 1')),
  "plan-mismatch": commandLine,
  "tensor-file-invalid": commandLine,
  "file-unwritable": commandLine,
  "program-invalid": commandLine,
  "program-threw": commandLine,
  "option-unknown": typed(/did you mean streams/u, (isFixed) => compiled(isFixed ? '{"streams":2}' : '{"stream":2}')),
  "option-value": commandLine,
  "backend-unavailable": machine,
  "interleaving-invalid": typed(/seed:7/u, (isFixed) => parseInterleaving(isFixed ? "seed:7" : "seed7")),
  stuck: typed(/in the same order on all ranks/u, (isFixed) => reduced(!isFixed)),
  "slot-overrun": repairs,
  "group-ends-invalid": typed(/whose sum is at most the rows/u, (isFixed) =>
    executed(
      (f) => groupedMatmul(f.input([4, 2]), f.input([2, 2, 2]), cumsum(f.input([2], "int64"), 0)),
      [Tensor.zeros([4, 2]), Tensor.zeros([2, 2, 2]), Tensor.from([2n, isFixed ? 2n : 3n], "int64")],
    ),
  ),
  "position-past-end": typedEach(
    [/stop before the cache is full/u, (isFixed) => updated(4, isFixed ? 2 : 3)],
    [/make its axis longer/u, (isFixed) => updated(isFixed ? 5 : 4, 3)],
  ),
  "command-threw": untyped("The error is a bug in Braid, and the fix asks for a report."),
  "worker-died": machine,
  "gpu-call-failed": machine,
  "gpu-memory": machine,
  "gpu-unsupported": machine,
  "rank-failed": machine,
  interrupted: untyped("The user ended the run: it prints no fix."),
  "rank-behind": machine,
  "rendezvous-failed": machine,
  "launcher-environment": machine,
  "program-differs": machine,
  "timed-out": typed(/allow more time/u, (isFixed) =>
    executed(
      (f) => matmul(matmul(f.input([256, 256]), f.input([256, 256])), f.input([256, 256])),
      [0, 1, 2].map(() => Tensor.zeros([256, 256])),
      { timeout: isFixed ? 60 : 1e-6 },
    ),
  ),
  "check-failed": machine,
  "not-checked": machine,
};

async function raised(program: () => unknown): Promise<readonly Diagnostic[]> {
  try {
    await program();
  } catch (error) {
    if (error instanceof DiagnosticError) return error.diagnostics;
    throw error;
  }
  return [];
}

describe("fixes by code", () => {
  const rows = keysOf(diagnosticCodes).map((code) => ({ code, row: table[code] }));

  const all = rows.flatMap(({ code, row }) => {
    const programs = row.kind === "typed" ? [row] : row.kind === "typed each" ? row.programs : [];
    return programs.map(({ help, program }) => ({ code, help, program }));
  });
  it.each(machineRows)("$code, done, is gone: $help", async ({ code, help, program }) => {
    const [diagnostic] = await raised(() => program(null));
    expect([diagnostic?.code, diagnostic?.help]).toEqual([code, expect.stringMatching(help)]);
    expect(await raised(() => program(diagnostic?.help ?? ""))).toEqual([]);
  });

  it.each(all)("$code, typed, is gone: $help", async ({ code, help, program }) => {
    const [diagnostic] = await raised(() => program(false));
    expect([diagnostic?.code, diagnostic?.help]).toEqual([code, expect.stringMatching(help)]);
    expect(await raised(() => program(true))).toEqual([]);
  });

  it("has rows of machines for those that it leaves to them", () => {
    const codes: readonly string[] = [...machineRows, ...processRows].map(({ code }) => code);
    expect(rows.flatMap(({ code, row }) => (row.kind === "machine" && !codes.includes(code) ? [code] : []))).toEqual(
      [],
    );
  });

  it("has rows of the other tables for those that it leaves to them", () => {
    const refused = [...checked, ...convertOpToCommunication, ...streamParallelType];
    const elsewhere: readonly string[] = [...badAnnotations, ...refused].map(({ code }) => code);
    const left = rows.flatMap(({ code, row }) =>
      row.kind === "annotations" && !elsewhere.includes(code) ? [code] : [],
    );
    expect(left).toEqual([]);
  });
  it("has host programs and dumps for those that it leaves to them", () => {
    const said = badPrograms.map((row) => row.said).join("");
    const refused = dumpAdvice.map((row) => {
      try {
        parse(row.refused);
      } catch (error) {
        return String(error);
      }
      return "";
    });
    const elsewhere = { "host programs": said, dumps: refused.join("") } as const;
    const left = rows.flatMap(({ code, row }) =>
      row.kind in elsewhere && !elsewhere[row.kind as keyof typeof elsewhere].includes(`error[${code}]`) ? [code] : [],
    );
    expect(left).toEqual([]);
  });
  it("has an example of each finding", () => {
    const examples = new Set(
      readdirSync(new URL("../fixtures/findings", import.meta.url)).map((name) => name.replace(/\.\w+$/u, "")),
    );
    expect(rows.flatMap(({ code, row }) => (row.kind === "repairs" && !examples.has(code) ? [code] : []))).toEqual([]);
  });
});
