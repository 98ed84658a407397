/** Names that users give tensors, in messages, findings, dumps, traces and reports. */
import {
  add,
  compile,
  DeviceMesh,
  DiagnosticError,
  Fusion,
  lower,
  matmul,
  mul,
  MultiDeviceExecutor,
  parse,
  print,
  record,
  renderDiagnostic,
  slice,
  sum,
  Tensor,
} from "@braid-compiler/braid";
import { printFusion } from "@braid-compiler/braid/internals";
import { describe, expect, it } from "vitest";
import { diagnosticOf } from "./expect-diagnostic.ts";

/** A pipeline over chunks with a named operand, result and sum; `names` false: the same without names. */
function pipeline(names = true): Fusion {
  const f = new Fusion();
  const [x, w] = [f.input([2, 2, 3, 8]), f.input([8, 4])];
  const hidden = matmul(x, w);
  const total = sum(hidden, [1]);
  f.output(total);
  const mesh = DeviceMesh.range(2);
  for (const tv of [x, w, hidden, total]) tv.setDeviceMesh(mesh);
  x.axis(1).parallelize("DIDx");
  hidden.axis(0).parallelize("Stream");
  hidden.axis(1).parallelize("DIDx");
  if (names) {
    x.named("tokens");
    hidden.named("layer0/hidden");
    total.named("total");
  }
  return f;
}

describe("a name", () => {
  it("is read back, replaced, and given once in a program", () => {
    const f = new Fusion();
    const [x, y] = [f.input([4]), f.input([4])];
    expect(x.named("x").named("tokens")).toBe(x);
    expect([x.name, y.name]).toEqual(["tokens", null]);
    expect(y.named("x").name).toBe("x");
    expect(diagnosticOf(() => y.named("tokens"))).toMatchObject({
      code: "bad-argument",
      message: "T0 already has the name tokens",
      place: { kind: "call", text: 'T1.named("tokens")' },
    });
  });

  it.each(["", "T3", "0x", "two words", "naïve", "a".repeat(65), "a\n// b"])("is refused as %j", (name) => {
    const x = new Fusion().input([4]);
    expect(diagnosticOf(() => x.named(name))).toMatchObject({ code: "bad-argument" });
    expect(x.name).toBeNull();
  });
});

describe("messages name tensors", () => {
  it("of calls", () => {
    const f = new Fusion();
    const [x, y] = [f.input([4]).named("x"), f.input([5]).named("y")];
    const diagnostic = diagnosticOf(() => add(x, y));
    expect(diagnostic.tensors).toEqual([
      { tensor: "T0", name: "x" },
      { tensor: "T1", name: "y" },
    ]);
    expect(diagnostic.place).toEqual({ kind: "call", text: "add(T0, T1)" });
    const text = renderDiagnostic(diagnostic);
    expect(text).toContain("\n  at: add(x, y)\n");
    expect(text).toContain("\n  where: T0 is x\n  where: T1 is y\n");
    expect(diagnosticOf(() => x.axis(0).parallelize("DIDx").parallelize("Stream") && x.split(0, 2)).tensors).toEqual([
      { tensor: "T0", name: "x" },
    ]);
  });

  it("of lowering, record and sizes", () => {
    const f = pipeline();
    f.input([4]).named("unplaced");
    expect(diagnosticOf(() => lower(f))).toMatchObject({
      code: "mesh-missing",
      tensors: [{ tensor: "T4", name: "unplaced" }],
    });
    const g = new Fusion();
    g.output(mul(g.input([null]).named("left"), g.input([null])));
    const wrong = diagnosticOf(() => record(lower(g), { rank: 0, sizes: { i0: 2, i2: 3 } }));
    expect(wrong.tensors).toContainEqual(expect.objectContaining({ tensor: "T0", name: "left" }));
  });
});

describe("dumps", () => {
  it("begin with a comment for each name, of derived tensors too, and are read back", () => {
    const host = lower(pipeline(), { rank: 0 });
    const dump = print(host);
    const comments = dump.split("\n").filter((line) => line.startsWith("//"));
    expect(comments).toContain("// T0 tokens");
    expect(comments.some((line) => /^\/\/ T\d+ chunk of layer0\/hidden$/u.test(line))).toBe(true);
    const plain = dump.replaceAll(/^\/\/.*\n/gmu, "");
    expect(plain).toBe(print(lower(pipeline(false), { rank: 0 })));
    expect(print(parse(dump))).toBe(plain);
  });

  it("of Fusions name them too", () => {
    expect(printFusion(pipeline().data()).split("\n").slice(0, 3)).toEqual([
      "// T0 tokens",
      "// T3 total",
      "// T2 layer0/hidden",
    ]);
  });
});

it("change no command, but for the texts of statements", () => {
  const [named, plain] = [pipeline(), pipeline(false)].map((f) => compile(f, { devices: 2 }).program);
  const commands = (program: typeof named): unknown => program?.ranks.map((rank) => rank.commands);
  expect(commands(named)).toEqual(commands(plain));
  const texts = named?.ranks[0]?.origins.map(({ statement }) => statement) ?? [];
  expect(texts.some((text) => text.includes("  // T") && text.includes("layer0/hidden"))).toBe(true);
});

it("messages and findings name the line that made a tensor", () => {
  const f = new Fusion();
  const x = f.input([4, 4]);
  const line = lineOf(new Error("here")) + 1;
  const y = matmul(x, mul(x, 2));
  f.output(y);
  x.setDeviceMesh(DeviceMesh.range(2));
  const { tensors: [first] = [] } = diagnosticOf(() => lower(f, { propagate: false }));
  expect(first?.tensor).toBe("T2");
  expect(first?.source).toMatch(new RegExp(String.raw`tensor-names\.test\.ts:${line}:\d+$`, "u"));
  const derived = lower(pipeline(), { rank: 0 }).tensors.filter(({ origin }) => origin?.relation !== undefined);
  expect(derived.length).toBeGreaterThan(0);
  expect(derived.every(({ origin }) => origin?.source?.path.endsWith("tensor-names.test.ts"))).toBe(true);
});

/** The line of an error that this file made. */
function lineOf(error: Error): number {
  return Number(/tensor-names\.test\.ts:(\d+):/u.exec(error.stack ?? "")?.[1]);
}

it("errors of lowering name the lines that placed a tensor, and errors of calls the line of the call", () => {
  const f = new Fusion();
  const x = f.input([6, 4]);
  const line = lineOf(new Error("here"));
  const y = slice(x, [1, 0], [5, 4]);
  f.output(y);
  y.setDeviceMesh(DeviceMesh.range(2));
  x.setDeviceMesh(DeviceMesh.range(2));
  y.axis(0).parallelize("Stream");
  const refused = diagnosticOf(() => lower(f));
  expect(refused.code).toBe("stream-on-cut-axis");
  const [where] = refused.tensors ?? [];
  expect(where?.annotations?.map(({ call, source }) => [call, lineIn(source) - line])).toEqual([
    ["setDeviceMesh", 3],
    ['axis(0).parallelize("Stream")', 5],
  ]);
  expect(renderDiagnostic(refused)).toMatch(/\n {2}where: T1 is from \S+; setDeviceMesh at \S+; axis\(0\)\.parallel/u);
  expect(lineIn(diagnosticOf(() => matmul(x, x)).source) - line).toBe(14);
  expect(renderDiagnostic(diagnosticOf(() => x.axis(7)))).toMatch(/\n {2}at: T0\.axis\(7\)\n {2}where: \S+:\d+:\d+\n/u);
});

it("a later annotation replaces an equal one", () => {
  const f = new Fusion();
  const x = f.input([4]);
  for (const devices of [2, 4]) x.setDeviceMesh(DeviceMesh.range(devices));
  x.outerSplit(0, 2);
  x.merge(0);
  x.setAllocationDomain([0]);
  const { annotations = [] } = f.data().tensors[0]?.origin ?? {};
  expect(annotations.map(({ call }) => call)).toEqual([
    "setDeviceMesh",
    "outerSplit(0, 2)",
    "merge(0)",
    "setAllocationDomain",
  ]);
});

it("errors of runs name inputs", async () => {
  const f = new Fusion();
  f.output(mul(f.input([4]).named("tokens"), 2));
  const executor = await MultiDeviceExecutor.create(f, { devices: 1 });
  try {
    const error: unknown = await executor.run([Tensor.zeros([5])]).catch((thrown: unknown) => thrown);
    if (!(error instanceof DiagnosticError)) throw error;
    const [tensor] = error.diagnostics[0]?.tensors ?? [];
    expect(tensor).toMatchObject({ tensor: "T0", name: "tokens" });
    expect(tensor?.source).toContain("tensor-names.test.ts");
  } finally {
    await executor.close();
  }
});

function lineIn(source = ""): number {
  return Number(/tensor-names\.test\.ts:(\d+):/u.exec(source)?.[1]);
}

it("findings name the tensors of their statements", () => {
  const host = lower(pipeline(), { rank: 0 });
  const dropped = [0, 1].map((rank) => {
    const program = lower(pipeline(), { rank });
    return { ...program, body: program.body.map((each) => (each.kind === "ForLoop" ? withoutWaits(each) : each)) };
  });
  expect(host.body.some(({ kind }) => kind === "ForLoop")).toBe(true);
  const { report } = compile(dropped, { devices: 2 });
  expect(report.ok).toBe(false);
  const named = report.findings.flatMap(({ tensors = [] }) => tensors.map(({ name }) => name));
  const lines = report.findings.flatMap(({ tensors = [] }) => tensors.map(({ source }) => lineIn(source)));
  expect(lines.length).toBeGreaterThan(0);
  expect(lines.every((line) => line > 0)).toBe(true);
  expect(named.some((name = "") => name.includes("layer0/hidden") || name.includes("total"))).toBe(true);
  expect(report.findings.map(({ place }) => JSON.stringify(place)).join()).not.toContain("//");
  expect(() => compile(dropped, { devices: 2 })).not.toThrow(DiagnosticError);
});

type Loop = Extract<ReturnType<typeof lower>["body"][number], { kind: "ForLoop" }>;

function withoutWaits(loop: Loop): Loop {
  return { ...loop, body: loop.body.filter(({ kind }) => kind !== "Wait" && kind !== "Synchronize") };
}
