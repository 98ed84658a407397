/** Plans that tests write, and ways to break them. */
import { type Compilation, compile, type CompileOptions } from "../../src/compile/compile.ts";
import { DeviceMesh } from "../../src/ir/device-mesh.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { add, full, groupedMatmul, matmul, sum } from "../../src/ir/api/ops.ts";
import { makePlan, type PlanFiles } from "../../src/plan/make-plan.ts";
import { type Plan, readPlan } from "../../src/plan/read-plan.ts";
import { sha256 } from "../../src/plan/plan-document.ts";
import { invariant } from "../../src/support/invariant.ts";
import { layeredFusions } from "../support/layered-fusions.ts";
import { exchangeFusion, exchangeOptions, inGemms } from "../schedule/exchanges.ts";
import { attentionFusion } from "../gpu/attention-cases.ts";

export const target = { capability: 90, multiprocessors: 132 };

export function ring(devices = 2, backend: CompileOptions["backend"] = "cuda"): Compilation {
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
export function total(): Compilation {
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

/** A kernel that reads an empty tensor: rank 1 has no index of the contracted axis. */
export function empty(): Compilation {
  const f = new Fusion();
  const [x, w] = [f.input([3, 1], "float"), f.input([2, 1, 4], "float")];
  f.output(groupedMatmul(x, w, full(f, [2], 3, "int")));
  for (const tensor of [x, w]) {
    tensor.setDeviceMesh(DeviceMesh.range(2));
    tensor.outerSplit(1, 2).parallelize("DIDx");
  }
  return compile(f, { devices: 2, on: "cuda", backend: "cuda" });
}

export function attention(): Compilation {
  const fusion = attentionFusion(
    { name: "", q: [2, 16, 8], k: [2, 16, 8], causal: "bottomRight", mask: { of: "bias", shape: [2, 1, 16] } },
    "half",
  );
  return compile(fusion, { devices: 1, on: "cuda", attention: "fused" });
}

/** GEMMs that add partial results, which peers have written. */
export function adding(): Compilation {
  const each = { primitive: "tp-rowwise", protocol: "put", outputs: 2, dtype: "half" } as const;
  return compile(exchangeFusion(each), { ...exchangeOptions(each), on: "cuda", schedule: inGemms });
}

/** Equal layers, of which the documents of ranks have blocks. */
export function layers(count = 24): Compilation {
  return compile(layeredFusions["sharded blocks"](count, 2), { devices: 2, on: "cuda", backend: "cuda" });
}

export function planOf(compilation: Compilation): PlanFiles {
  const options = { braid: "0.1.0", program: "0".repeat(16), options: { "--schedule streams": "2" } };
  return makePlan(compilation, { ...options, target, limits: new Map(), names: null }).files;
}

export function read(files: PlanFiles): Promise<Plan> {
  return readPlan("plan/", (file) => {
    const text = files.get(file);
    return text === undefined
      ? Promise.reject(new Error(`no ${file}`))
      : Promise.resolve(new TextEncoder().encode(text));
  });
}

/** With other text in a file, and hashes of what is there. */
export function changed(files: PlanFiles, file: string, change: (text: string) => string): PlanFiles {
  const others = new Map(files);
  const before = others.get(file) ?? "";
  const after = change(before);
  invariant(after !== before, `${file} has no such text`);
  others.set(file, after);
  const plan = others.get("plan.json") ?? "";
  if (file !== "plan.json") others.set("plan.json", plan.replace(sha256(before), sha256(after)));
  return others;
}

/** What is broken, in which file, by which change of its text, and the refusal: "code at place: found; expected". */
export const breaks = [
  ["another version", "plan.json", ['"version": 2', '"version": 1'], /^plan-version .*version 1; version 2$/],
  ["no plan", "plan.json", ["braid-plan", "braid-play"], /^plan-invalid .*: no plan; /],
  ["no JSON", "plan.json", ["{", ""], /^plan-invalid at plan\/plan.json: /],
  ["a verdict that is not ok", "plan.json", ['"ok":true', '"ok":false'], /^plan-unverified /],
  ["another number of ranks", "plan.json", ['"world": 2', '"world": 1'], /rank 0 of 2; rank 0 of 1$/],
  ["a rank too many", "plan.json", ['"world": 2', '"world": 3'], /: rank 0 of 2; rank 0 of 3$/],
  ["a file outside of its folder", "plan.json", ['"rank-1.json":', '"../rank-1.json":'], /names the file \.\.\/rank/],
  ["another rank's list", "rank-1.json", ['"rank": 1', '"rank": 0'], /rank-1.json: rank 0 of 2; rank 1 of 2$/],
  ["an unknown operation", "rank-0.json", ['"kind":"gemm"', '"kind":"gemv"'], /^plan-invalid .*ops\.\d+\.kind: "gemv"/],
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
] as const;

/** The same of blocks, in plans of `layers`. */
export const brokenBlocks = [
  ["a block of no times", [/"\$times":\d+/u, '"$times":0'], /ops\.\d+\.kind: /],
  ["a block of more rows than any", [/"\$times":\d+/u, '"$times":9000000000'], /ops\.\d+\.kind: /],
  ["a block within a block", ['"$rows":[', '"$rows":[{"$times":2,"$rows":[]},'], /ops\.\d+\.kind: /],
  ["a number without a step", [/"\$step":\d+/u, '"$stop":1'], /ops\.\d+\./],
  ["too few numbers", [/"\$each":\[\d+,/u, '"$each":['], /ops\.\d+\./],
  ["a text with a list", [/"\$text":\["/u, '"$text":[[],"'], /(statements|commands)\./],
] as const;
