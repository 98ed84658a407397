/** Edits of programs whose schedule was chosen: each is what explaining the edited program says. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { DeviceMesh, explain, type Explanation, Fusion, gelu, linear } from "@braid-compiler/braid";
import { parseProfile } from "../../src/simulate/parse-profile.ts";

const profile = parseProfile(readFileSync(new URL("../../profiles/4xH200.json", import.meta.url), "utf8"), "4xH200");

interface Annotated {
  readonly layers?: number;
  /** The axis with chunks, of so many layers. */
  readonly stream?: number | null;
  readonly streamed?: number;
  readonly sequences?: number;
}

/** Linears over whole sequences, whose sums over the devices nothing hides, and hidden ones between them. */
function sums({ layers = 1, stream = null, streamed = layers, sequences = 4 }: Annotated): Fusion {
  const f = new Fusion();
  const input = (name: string, shape: readonly number[]) => f.input(shape, "bfloat16").named(name);
  const x = input("x", [sequences, 2048, 4096]);
  const pairs = Array.from({ length: layers }, (_, i) => [input(`a${i}`, [8192, 4096]), input(`b${i}`, [4096, 8192])]);
  for (const tensor of f.inputs) tensor.setDeviceMesh(DeviceMesh.range(4));
  let y = x;
  for (const [i, [a, b]] of pairs.entries()) {
    if (a === undefined || b === undefined) continue;
    a.outerSplit(0, 4).parallelize("DIDx");
    b.outerSplit(1, 4).parallelize("DIDx");
    y = linear(gelu(linear(y, a)), b).named(`y${i}`);
    if (stream !== null && i < streamed) y.outerSplit(stream, Math.min(4, sequences)).parallelize("Stream");
  }
  f.output(y);
  return f;
}

function explained(fusion: Fusion, fewerLayers = false): Explanation {
  return explain(fusion, { devices: 4, on: "cuda", schedule: "auto", verify: "off", fewerLayers }, profile);
}

it("a chosen serial form is left for a loop that an edit makes", () => {
  const { choice, alternatives, run } = explained(sums({}));
  expect(choice?.chosen.lowering.overlap).toBe(false);
  const [fastest] = alternatives ?? [];
  expect(fastest?.change).toBe('y0.outerSplit(0, 4).parallelize("Stream")');
  const edited = explained(sums({ stream: 0 }));
  expect(edited.run.milliseconds).toBeCloseTo(fastest?.milliseconds ?? 0, 9);
  expect(edited.run.milliseconds).toBeLessThan(0.95 * run.milliseconds);
});

it("two sequences are two chunks", () => {
  const changes = explained(sums({ sequences: 2 })).alternatives?.map(({ change }) => change);
  expect(changes).toContain('y0.outerSplit(0, 2).parallelize("Stream")');
});

it("of several regions, of equal layers all at once", () => {
  const { choice, alternatives } = explained(sums({ layers: 3 }));
  expect(choice?.regions.length).toBeGreaterThan(0);
  const change = 'y0.outerSplit(0, 4).parallelize("Stream"); y1.outerSplit(0, 4).parallelize("Stream")';
  const both = alternatives?.find((each) => each.change === change);
  const edited = explained(sums({ layers: 3, stream: 0, streamed: 2 }));
  expect(edited.run.milliseconds).toBeCloseTo(both?.milliseconds ?? 0, 9);
});

it("of many layers by few of them", () => {
  const { choice, layers, alternatives } = explained(sums({ layers: 16 }), true);
  expect([choice === null, layers === null]).toEqual([false, false]);
  const [fastest] = alternatives ?? [];
  const change = /^y0\.outerSplit\((\d), 4\)\.parallelize\("Stream"\), and 14 more alike$/u;
  expect(fastest?.change).toMatch(change);
  const stream = Number(change.exec(fastest?.change ?? "")?.[1]);
  const edited = explained(sums({ layers: 16, stream, streamed: 15 }), true);
  expect(edited.run.milliseconds / (fastest?.milliseconds ?? 0)).toBeCloseTo(1, 3);
});
