/** Each cause of exposed time, planted alone by a machine on which only one thing is slow: it is named first. */
import { describe, expect, it } from "vitest";
import {
  add,
  compile,
  type CompileOptions,
  crossEntropy,
  DeviceMesh,
  explain,
  Fusion,
  gelu,
  linear,
  set,
} from "@braid-compiler/braid";
import { planOwn } from "../../bench/compare/braid/plan-own.ts";
import { type Implementation, parseImplementations } from "../../bench/compare/implementation.ts";
import type { Primitive } from "../../bench/compare/primitives.ts";
import { type Cause, causes } from "../../src/explain/causes.ts";
import { type ExplainedRun, explainRun, causeTime } from "../../src/explain/explain-run.ts";
import type { MachineProfile } from "../../src/simulate/machine-profile.ts";
import { simulate } from "../../src/simulate/simulate.ts";
import { at, keysOf } from "../../src/support/invariant.ts";
import { machine, noCosts, perMegabyte, transfersAt } from "./machine.ts";

interface Planted {
  readonly cause: Cause;
  readonly primitive: Primitive;
  /** As for `braid bench --impl`. */
  readonly implementation: string;
  readonly slow: Partial<MachineProfile>;
}

const [gather, scatter] = ["tp-columnwise", "tp-rowwise"] as const;
const copies = (microseconds: number): Partial<MachineProfile> => ({ peerCopies: perMegabyte(microseconds) });

const planted: readonly Planted[] = [
  {
    cause: "notInLoop",
    primitive: gather,
    implementation: "serial",
    slow: { transfers: transfersAt(perMegabyte(20)) },
  },
  {
    cause: "firstChunk",
    primitive: gather,
    implementation: "braid;backend=cuda;form=collective;chunks=2",
    slow: copies(20),
  },
  { cause: "lastChunk", primitive: scatter, implementation: "braid;backend=cuda", slow: copies(20) },
  {
    cause: "linkBound",
    primitive: gather,
    implementation: "braid;backend=cuda;form=collective;chunks=4",
    slow: copies(300),
  },
  {
    cause: "chunking",
    primitive: gather,
    implementation: "braid;backend=cuda",
    slow: { products: [{ dtype: "bfloat16", m: [256, 1024], n: [1], k: [1], teraflops: [5, 10] }] },
  },
  {
    cause: "sums",
    primitive: scatter,
    implementation: "braid;backend=cuda",
    slow: { memory: perMegabyte(10) },
  },
  {
    cause: "interference",
    primitive: scatter,
    implementation: "braid;backend=nccl;form=collective;chunks=8",
    slow: { transfers: transfersAt(perMegabyte(20)), costs: { ...noCosts, underTransfer: 3 } },
  },
  {
    cause: "sms",
    primitive: gather,
    implementation: "braid;backend=nccl;form=collective;chunks=8",
    slow: { transfers: transfersAt(perMegabyte(20)) },
  },
  {
    cause: "reuse",
    primitive: gather,
    implementation: "braid;backend=cuda;streams=1;copyStream=inline",
    slow: copies(50),
  },
  {
    cause: "localCopy",
    primitive: gather,
    implementation: "braid;backend=cuda",
    slow: { localCopies: perMegabyte(50), ...copies(60) },
  },
  {
    cause: "host",
    primitive: gather,
    implementation: "braid;backend=cuda;graph=off",
    slow: { costs: { ...noCosts, issue: 50 } },
  },
  {
    cause: "latency",
    primitive: gather,
    implementation: "braid;backend=cuda",
    slow: { costs: { ...noCosts, signal: 100 } },
  },
];

interface Shaped {
  readonly cause: Cause;
  readonly what: string;
  readonly fusion: () => Fusion;
  readonly slow: Partial<MachineProfile>;
  readonly options?: Partial<CompileOptions>;
}

/** examples/mlp.ts: rows are gathered for w1, and partial results of w2 are reduced and scattered. */
function mlp(): Fusion {
  const f = new Fusion();
  const [x, w1, w2] = [
    f.input([1024, 1024], "bfloat16"),
    f.input([4096, 1024], "bfloat16"),
    f.input([1024, 4096], "bfloat16"),
  ];
  const y = linear(gelu(linear(x, w1)), w2);
  f.output(add(x, y));
  for (const tensor of [x, w1, w2]) tensor.setDeviceMesh(DeviceMesh.range(4));
  x.outerSplit(0, 4);
  x.outerSplit(1, 4).parallelize("DIDx");
  w1.outerSplit(0, 4).parallelize("DIDx");
  w2.outerSplit(1, 4).parallelize("DIDx");
  y.outerSplit(0, 4).parallelize("Stream");
  return f;
}

/** The loss of logits whose vocabulary is sharded: maxima, sums of exponentials, and the targets' logits are reduced. */
function vocabularyParallel(): Fusion {
  const f = new Fusion();
  const [x, w, target] = [
    f.input([1024, 1024], "bfloat16"),
    f.input([4096, 1024], "bfloat16"),
    f.input([1024], "int64"),
  ];
  f.output(crossEntropy(linear(x, w), target));
  for (const tensor of [x, w, target]) tensor.setDeviceMesh(DeviceMesh.range(4));
  w.outerSplit(0, 4).parallelize("DIDx");
  return f;
}

/**
 * Each chunk's partial results are summed over the devices between its two GEMMs. `withOther`: a GEMM comes after the
 * loop that needs none of it.
 */
function summedBetween(withOther = false): Fusion {
  const f = new Fusion();
  const [x, w1, w2] = [
    f.input([1024, 1024], "bfloat16"),
    f.input([1024, 1024], "bfloat16"),
    f.input([256, 1024], "bfloat16"),
  ];
  const y = linear(linear(x, w1), w2);
  f.output(y);
  for (const tensor of [x, w1, w2]) tensor.setDeviceMesh(DeviceMesh.range(4));
  if (withOther) {
    const other = f.input([1024, 1024], "bfloat16");
    other.setDeviceMesh(DeviceMesh.range(4));
    f.output(linear(other, other));
  }
  for (const tensor of [x, w1]) tensor.outerSplit(1, 4).parallelize("DIDx");
  y.outerSplit(0, 2).parallelize("Stream");
  return f;
}

/** The second linear has its data while x moves for the first, which comes before it on the stream. */
function independent(): Fusion {
  const f = new Fusion();
  const [x, w] = [f.input([1024, 1024], "bfloat16"), f.input([1024, 1024], "bfloat16")];
  f.output(linear(x, w));
  f.output(linear(w, w));
  for (const tensor of [x, w]) tensor.setDeviceMesh(DeviceMesh.range(4));
  x.outerSplit(1, 4).parallelize("DIDx");
  return f;
}

const shaped: readonly Shaped[] = [
  {
    cause: "queued",
    what: "an MLP whose second gather queues after the first scatter",
    fusion: mlp,
    slow: { transfers: transfersAt(perMegabyte(40)) },
  },
  {
    cause: "dependent",
    what: "a loop of two chunks with a sum between GEMMs",
    fusion: summedBetween,
    slow: { transfers: transfersAt(perMegabyte(100)) },
  },
  {
    cause: "order",
    what: "a program whose second op does not need what moves for the first",
    fusion: independent,
    slow: { transfers: transfersAt(perMegabyte(100)) },
    options: { disablePass: ["cover-communications", "sink-waits"] },
  },
];

function implementationOf(text: string): Extract<Implementation, { readonly kind: "braid" }> {
  const [found] = parseImplementations(text, "test");
  if (found?.kind !== "braid") throw new Error(text);
  return found;
}

function explained({ primitive, implementation, slow }: Planted): ExplainedRun {
  const profile = machine(slow);
  const problem = { primitive, dtype: "bfloat16", m: 1024, n: 1024, k: 1024, devices: 4 } as const;
  const plan = (text: string) => planOwn(implementationOf(text), problem, { on: "cuda", profile }).program;
  const graph = !implementation.includes("graph=off");
  const program = plan(implementation);
  const run = { program, ...simulate(program, profile, { graph }) };
  return explainRun(run, profile, { serial: plan("serial"), graph });
}

function predicted(fusion: Fusion, slow: Partial<MachineProfile>, options?: Partial<CompileOptions>): ExplainedRun {
  const { program } = compile(fusion, { devices: 4, on: "cuda", ...options });
  const profile = machine(slow);
  return explainRun({ program, ...simulate(program, profile, { graph: true }) }, profile, {
    serial: null,
    graph: true,
  });
}

describe("a cause planted alone", () => {
  it.each(planted)("$cause is named first", (each) => {
    const { causes: found, exposed, milliseconds, floor } = explained(each);
    const [first] = found;
    expect(first?.cause, JSON.stringify(found)).toBe(each.cause);
    expect(at(found, 0).milliseconds).toBeGreaterThan(0.3 * exposed);
    const sum = found.reduce((total, { milliseconds: time }) => total + time, 0);
    expect(sum).toBeCloseTo(exposed, 9);
    expect(milliseconds).toBeGreaterThanOrEqual(floor.compute - 1e-9);
  });

  it("names a late peer first on a rank that has no rows", () => {
    const f = new Fusion();
    const [x, w] = [f.input([5, 1024], "bfloat16"), f.input([1024, 1024], "bfloat16")];
    const y = linear(x, w);
    const whole = set(y);
    f.output(whole);
    // Rank 3 has the first share.
    const mesh = new DeviceMesh([3, 2, 1, 0]);
    for (const tensor of [x, w, y, whole]) tensor.setDeviceMesh(mesh);
    for (const tensor of [x, y]) tensor.outerSplit(0, 4).parallelize("DIDx");
    const options = { devices: 4, on: "cuda", backend: "nccl", overlap: false } as const;
    const { run } = explain(f, options, machine({}));
    expect(run).toMatchObject({ rank: 0, causes: [{ cause: "latePeer" }] });
  });

  it.each(shaped)("$cause is named first in $what", ({ cause, fusion, slow, options }) => {
    const run = predicted(fusion(), slow, options);
    expect(run.causes[0]?.cause, JSON.stringify(run.causes)).toBe(cause);
    expect(at(run.causes, 0).milliseconds).toBeGreaterThan(0.3 * run.exposed);
  });

  it("of two sums that one kernel needs, only the one that was ready before waited for the other", () => {
    const run = predicted(vocabularyParallel(), { memory: perMegabyte(1), transfers: transfersAt(perMegabyte(100)) });
    const each = run.exposed / 3;
    expect(causeTime(run, "notInLoop")).toBeCloseTo(2 * each, 9);
    expect(causeTime(run, "queued")).toBeCloseTo(each, 9);
  });

  it("a kernel that could have run in several gaps fills its own time once", () => {
    const gemm = (2 * 1024 ** 3) / 10e12;
    const run = predicted(
      summedBetween(true),
      { transfers: transfersAt(perMegabyte(1000)) },
      { disablePass: ["cover-communications", "sink-waits"] },
    );
    expect(run.exposed).toBeGreaterThan(8 * gemm * 1000);
    expect(causeTime(run, "order")).toBeCloseTo(gemm * 1000, 6);
  });

  it("buffer reuse that stream order holds as long says that both have to change", () => {
    const reuse = (copyStream: string) => {
      const implementation = `braid;backend=cuda;streams=1;copyStream=${copyStream}`;
      const run = explained({ cause: "reuse", primitive: gather, implementation, slow: copies(50) });
      return run.causes.find(({ cause }) => cause === "reuse");
    };
    expect(reuse("inline")?.sentence).toMatch(
      / For [\d.]+ us of it, stream order holds it as long: both have to change\.$/u,
    );
    expect(reuse("dedicated")?.milliseconds).toBeGreaterThan(0);
    expect(reuse("dedicated")?.sentence).toBe(causes.reuse.sentence);
  });

  it("has a test for each cause", () => {
    const tested = new Set<Cause>([...planted, ...shaped].map(({ cause }) => cause)).add("latePeer");
    expect(keysOf(causes).filter((cause) => !tested.has(cause))).toEqual([]);
  });
});
