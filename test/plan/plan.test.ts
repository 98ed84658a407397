/** Plans: what is read back is what was written, and everything else is refused by one diagnostic. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { deviceOps } from "../../src/backends/cuda/ops/device-ops.ts";
import { type Compilation, compile, type CompileOptions } from "../../src/compile/compile.ts";
import { DiagnosticError } from "../../src/diagnostics/diagnostic.ts";
import { DeviceMesh } from "../../src/ir/device-mesh.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { add, matmul, sum } from "../../src/ir/api/ops.ts";
import { makePlan, type PlanFiles } from "../../src/plan/make-plan.ts";
import { type Plan, readPlan } from "../../src/plan/read-plan.ts";
import { sha256 } from "../../src/plan/sha256.ts";
import { partOf, putPart } from "../../src/plan/shards.ts";
import { at } from "../../src/support/invariant.ts";
import { attentionFusion } from "../gpu/attention-cases.ts";

const target = { capability: 90, multiprocessors: 132 };

function ring(devices = 2, backend: CompileOptions["backend"] = "cuda"): Compilation {
  const f = new Fusion();
  const [a, b] = [f.input([devices, 8, 64], "half"), f.input([64, 16], "half")];
  const c = matmul(a, b);
  f.output(c);
  for (const tensor of [a, b, c]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  a.axis(0).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  return compile(f, { devices, on: "cuda", backend });
}

/** Uneven parts, kernels that wait, and an output of which every rank has a copy. */
function total(): Compilation {
  const f = new Fusion();
  const x = f.input([7, 33], "float");
  const y = add(x, x);
  const z = sum(y, [0]);
  f.output(y);
  f.output(z);
  for (const tensor of [x, y, z]) tensor.setDeviceMesh(DeviceMesh.range(3));
  for (const tensor of [x, y]) tensor.outerSplit(0, 3).parallelize("DIDx");
  return compile(f, { devices: 3, on: "cuda", backend: "cuda" });
}

function attention(): Compilation {
  const fusion = attentionFusion({ name: "", q: [2, 16, 8], k: [2, 16, 8], causal: "bottomRight" }, "half");
  return compile(fusion, { devices: 1, on: "cuda", attention: "fused" });
}

function planOf(compilation: Compilation): PlanFiles {
  const options = { braid: "0.1.0", program: "0".repeat(16), options: { "--streams": "2" } };
  return makePlan(compilation, { ...options, target, limits: new Map() }).files;
}

function read(files: PlanFiles): Promise<Plan> {
  return readPlan("plan/", (file) => {
    const text = files.get(file);
    return text === undefined
      ? Promise.reject(new Error(`no ${file}`))
      : Promise.resolve(new TextEncoder().encode(text));
  });
}

/** With other text in a file, and hashes of what is there. */
function changed(files: PlanFiles, file: string, change: (text: string) => string): PlanFiles {
  const others = new Map(files);
  const before = others.get(file) ?? "";
  const after = change(before);
  expect(after).not.toBe(before);
  others.set(file, after);
  const plan = others.get("plan.json") ?? "";
  if (file !== "plan.json") others.set("plan.json", plan.replace(sha256(before), sha256(after)));
  return others;
}

/** The one diagnostic of reading it. */
async function refusal(files: PlanFiles): Promise<string> {
  const error: unknown = await read(files).then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof DiagnosticError)) return `not refused: ${String(error)}`;
  expect(error.diagnostics).toHaveLength(1);
  const { code, place, found, expected, help } = at(error.diagnostics, 0);
  expect(help).toBeDefined();
  return `${code} at ${place?.kind === "file" ? place.path : "nowhere"}: ${found}; ${expected}`;
}

describe.each([
  ["a ring", () => ring(4)],
  ["sums over links", total],
  ["attention", attention],
])("the plan of %s", (_, make) => {
  const compilation = make();
  const files = planOf(compilation);

  it("has the device operations of its Program, and what its messages need", async () => {
    const { ranks, document } = await read(files);
    const { program } = compilation;
    expect(document.world).toBe(program.ranks.length);
    for (const { rank, commands } of program.ranks) {
      const { ops, notes } = at(ranks, rank);
      const { memory, ...planned } = deviceOps(program, rank, target);
      expect(ops).toMatchObject(planned);
      expect(ops.memory).toMatchObject({ ...memory, in: {}, out: {}, copied: {} });
      expect(notes.commandCount).toBe(commands.length);
      expect(commands.map((_command, i) => notes.kindOf(i))).toEqual(commands.map(({ kind }) => kind));
    }
  });

  it("is the same text every time, with a hash of every other file", () => {
    expect([...planOf(make())]).toEqual([...files]);
    const { files: hashes } = JSON.parse(files.get("plan.json") ?? "") as { files: Record<string, string> };
    const others = [...files].filter(([file]) => file !== "plan.json");
    expect(hashes).toEqual(Object.fromEntries(others.map(([file, text]) => [file, sha256(text)])));
  });

  it("cuts tensors into parts that make up the whole again", async () => {
    const { document, ranks } = await read(files);
    const both = [
      ["input", document.inputs],
      ["output", document.outputs],
    ] as const;
    for (const [role, tensors] of both)
      for (const [position, { shape }] of tensors.entries()) {
        const parts = ranks.flatMap((rank) => rank.tensors.filter((t) => t.role === role && t.position === position));
        const bytes = shape.reduce((product, extent) => product * extent, at(parts, 0).dtype === "half" ? 2 : 4);
        const whole = Uint8Array.from({ length: bytes }, (_byte, i) => i % 251);
        const again = new Uint8Array(bytes);
        for (const part of parts) putPart(part, shape, partOf(part, shape, whole), again);
        expect(again).toEqual(whole);
      }
  });
});

describe("a plan is refused", () => {
  const files = planOf(ring());
  const [kernel = ""] = [...files.keys()].filter((file) => file.endsWith(".cu"));

  it.each([...files.keys()].filter((file) => file !== "plan.json"))("with a flipped bit in %s", async (file) => {
    const text = files.get(file) ?? "";
    await fc.assert(
      fc.asyncProperty(fc.nat(text.length - 1), fc.nat(6), async (position, bit) => {
        const flipped = String.fromCodePoint(text.charCodeAt(position) ^ (1 << bit));
        const broken = new Map(files).set(file, text.slice(0, position) + flipped + text.slice(position + 1));
        expect(await refusal(broken)).toMatch(new RegExp(`^plan-invalid at plan/${file}: SHA-256 [0-9a-f]{64}; `));
      }),
      { numRuns: 20 },
    );
  });

  it.each([
    ["another version", "plan.json", ['"version": 1', '"version": 2'], /^plan-version .*version 2; version 1$/],
    ["no plan", "plan.json", ["braid-plan", "braid-play"], /^plan-invalid .*: no plan; /],
    ["no JSON", "plan.json", ["{", ""], /^plan-invalid at plan\/plan.json: /],
    ["a verdict that is not ok", "plan.json", ['"ok":true', '"ok":false'], /^plan-unverified /],
    ["another number of ranks", "plan.json", ['"world": 2', '"world": 1'], /rank 0 of 2; rank 0 of 1$/],
    ["a rank too many", "plan.json", ['"world": 2', '"world": 3'], /: rank 0 of 2; rank 0 of 3$/],
    ["a file outside of its folder", "plan.json", ['"rank-1.json":', '"../rank-1.json":'], /names the file \.\.\/rank/],
    ["another rank's list", "rank-1.json", ['"rank": 1', '"rank": 0'], /rank-1.json: rank 0 of 2; rank 1 of 2$/],
    [
      "an unknown operation",
      "rank-0.json",
      ['"kind":"gemm"', '"kind":"gemv"'],
      /^plan-invalid .*ops\.\d+\.kind: "gemv"/,
    ],
    ["a negative offset", "rank-0.json", ['"offset":0', '"offset":-1'], /offset: -1; >=0$/],
    [
      "an address behind its space",
      "rank-0.json",
      ['"space":"in","tensor":0,"offset":0},"bias"', '"space":"in","tensor":0,"offset":2000},"bias"'],
      /operation \d+, gemm: bytes up to \d+ of in 0; at most \d+$/,
    ],
    [
      "a tensor that is not there",
      "rank-0.json",
      ['"space":"in","tensor":0,"offset":0},"bias"', '"space":"in","tensor":7,"offset":0},"bias"'],
      /of in 7; a space that the plan has$/,
    ],
    ["a kernel that is not there", "rank-0.json", ['"kernels": [0', '"kernels": [9'], /kernel 9; one from 0 to 0$/],
    ["an event that is not there", "rank-0.json", ['"event":0', '"event":99'], /event 99; one from 0 to \d+$/],
    [
      "a stream that is not there",
      "rank-0.json",
      ['"kind":"copy","stream":1', '"kind":"copy","stream":77'],
      /stream 77; /,
    ],
    [
      "a signal that nobody waits for",
      "rank-0.json",
      ['"kind":"wait","address":{"space":"word"', '"kind":"write","address":{"space":"word"'],
      /word \d of rank 0: \d signals, \d waits; as many of both$/,
    ],
  ] as const)("with %s", async (_, file, [before, after], expected) => {
    expect(await refusal(changed(files, file, (text) => text.replace(before, after)))).toMatch(expected);
  });

  it("without one of its files, or its hash", async () => {
    const { [kernel]: _, ...hashes } = (JSON.parse(files.get("plan.json") ?? "") as { files: Record<string, string> })
      .files;
    const without = changed(files, "plan.json", (text) =>
      text.replace(/"files": \{.*\}/, `"files": ${JSON.stringify(hashes)}`),
    );
    expect(await refusal(without)).toBe(`plan-invalid at plan/plan.json: no hash of ${kernel}; a hash of every file`);
  });
});

describe("a plan is not made", () => {
  it("of transfers of NCCL", () => {
    expect(() => planOf(ring(2, "nccl"))).toThrow("a plan cannot hold transfers of NCCL");
  });

  it("of a program with findings", () => {
    const compilation = ring();
    const report = { ...compilation.report, ok: false };
    expect(() => planOf({ ...compilation, report })).toThrow("a plan is made of a verified program");
  });
});
