/** What compile, choose, explain and verify say while they work: phases, and counts that grow. It changes no result. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { compile, type CompileOptions } from "../../src/compile/compile.ts";
import { MultiDeviceExecutor } from "../../src/executor/multi-device-executor.ts";
import { explain } from "../../src/explain/explain.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { add, matmul } from "../../src/ir/api/ops.ts";
import { DeviceMesh } from "../../src/ir/device-mesh.ts";
import { parseProfile } from "../../src/simulate/parse-profile.ts";
import { countingSteps, type OnProgress } from "../../src/support/progress.ts";
import { choose } from "../../src/tune/choose/choose.ts";
import { verify } from "../../src/verify/verify.ts";

const profile = parseProfile(readFileSync(path.join(import.meta.dirname, "../../profiles/2xH100.json"), "utf8"), "");

/** One or two gathered matmuls. */
function fusionOf(devices: number, layers: number): Fusion {
  const f = new Fusion();
  const mesh = DeviceMesh.range(devices);
  const inputs = Array.from(
    { length: layers },
    () => [f.input([devices, 128, 64], "half"), f.input([64, 64], "half")] as const,
  );
  for (const [a, b] of inputs) {
    const c = matmul(a, b);
    const d = add(c, c);
    f.output(d);
    for (const tensor of [a, b, c, d]) tensor.setDeviceMesh(mesh);
    a.axis(0).parallelize("DIDx");
    c.axis(0).parallelize("Stream");
  }
  return f;
}

interface Said {
  readonly label: string;
  readonly done?: number | undefined;
  readonly of?: number | undefined;
}

function listener(): { readonly said: readonly Said[]; readonly onProgress: OnProgress } {
  const said: Said[] = [];
  return { said, onProgress: (label, done, of) => void said.push({ label, done, of }) };
}

const labels = (said: readonly Said[]): readonly string[] => [...new Set(said.map(({ label }) => label))];

/** Of each label in turn, the counts grow and stay below their end. */
function expectCounts(said: readonly Said[]): void {
  for (const [i, { label, done, of }] of said.entries()) {
    if (done === undefined || of === undefined) continue;
    expect(done).toBeLessThanOrEqual(of);
    const before = said[i - 1];
    if (before?.label === label) expect(done).toBeGreaterThan(before.done ?? 0);
  }
}

const onGpus = (devices: number): CompileOptions => ({ devices, on: "cuda", backend: "cuda" });

describe("work that may take long says", () => {
  it("which ranks are recorded, and how many commands are verified", () => {
    const { said, onProgress } = listener();
    const compiled = compile(fusionOf(4, 2), { ...onGpus(4), onProgress });
    expect(labels(said)).toEqual(["recording", "recording ranks", "linking", "scheduling", "verifying commands"]);
    expectCounts(said);
    expect(compiled).toEqual(compile(fusionOf(4, 2), onGpus(4)));
    expect(JSON.stringify(compiled.options)).toBe(JSON.stringify(compile(fusionOf(4, 2), onGpus(4)).options));
    expect("onProgress" in compiled.options).toBe(false);
  });

  it("how many commands of one rank of each class are verified", () => {
    const { said, onProgress } = listener();
    const { program } = compile(fusionOf(16, 1), { ...onGpus(16), verify: "off" });
    expect(verify(program, { onProgress }).ok).toBe(true);
    expect(labels(said)).toEqual(["verifying: comparing the ranks", "verifying one rank of each class, by command"]);
    const all = listener();
    expect(verify(program, { full: true, notes: false, onProgress: all.onProgress }).ok).toBe(true);
    expect(labels(all.said)).toEqual(["verifying commands"]);
    expectCounts(all.said);
  });

  it("which region's schedule is chosen, and how many were predicted", () => {
    const one = listener();
    choose(fusionOf(2, 1), { devices: 2, on: "cuda", onProgress: one.onProgress }, profile);
    expect(labels(one.said)).toContain("predicting schedule 3");
    expect(labels(one.said).at(-1)).toMatch(/^verifying/u);
    const two = listener();
    choose(fusionOf(2, 2), { devices: 2, on: "cuda", onProgress: two.onProgress }, profile);
    expect(labels(two.said)).toContain("region 1 of 2: predicting schedule 3");
    expectCounts(two.said);
  });

  it("what an executor compiles and verifies", async () => {
    const { said, onProgress } = listener();
    const executor = await MultiDeviceExecutor.create(fusionOf(2, 1), { devices: 2, onProgress });
    await executor.close();
    expect(labels(said)).toEqual(["recording", "recording ranks", "linking", "scheduling", "verifying commands"]);
    const given = listener();
    const compiled = compile(fusionOf(2, 1), { devices: 2, verify: "off" });
    await (await MultiDeviceExecutor.create(compiled, { devices: 2, onProgress: given.onProgress })).close();
    expect(labels(given.said)).toEqual(["verifying commands"]);
  });

  it("how many other options are predicted", () => {
    const { said, onProgress } = listener();
    const asWritten = { ...onGpus(2), schedule: "as-written" } as const;
    const explained = explain(fusionOf(2, 1), { ...asWritten, onProgress }, profile);
    expect(labels(said)).toEqual(expect.arrayContaining(["verifying commands", "predicting other options"]));
    expectCounts(said.filter(({ label }) => label === "predicting other options"));
    expect(explained.alternatives).toEqual(explain(fusionOf(2, 1), asWritten, profile).alternatives);
  });
});

it("counts are said now and then, not for each step", () => {
  const { said, onProgress } = listener();
  const count = countingSteps(onProgress, "steps", 10_000);
  for (let i = 0; i < 20_000; i++) count();
  expect(said.map(({ done }) => done)).toEqual([0, 4096, 8192]);
});
