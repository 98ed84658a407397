/** Which communication outside of loops is worth a line: that which no kernel hides. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { DeviceMesh, explain, Fusion, gelu, gradients, linear } from "@braid-compiler/braid";
import { costlyRefusals } from "../../src/explain/refusal-costs.ts";
import { parseProfile } from "../../src/simulate/parse-profile.ts";

const profile = parseProfile(readFileSync(new URL("../../profiles/4xH200.json", import.meta.url), "utf8"), "4xH200");

it("names the gradient that is summed last, not those that are hidden, and all where all are asked for", () => {
  const f = new Fusion();
  const mesh = DeviceMesh.of({ dp: 2, tp: 2 });
  const input = (name: string, shape: readonly number[]) => f.input(shape, "bfloat16").named(name);
  const [x, w1, w2] = [input("x", [16384, 8192]), input("w1", [28672, 8192]), input("w2", [8192, 28672])];
  const dz = input("dz", [16384, 8192]);
  for (const tensor of f.inputs) tensor.setDeviceMesh(mesh);
  for (const rows of [x, dz]) rows.outerSplit(0, 2).parallelize("dp");
  w1.outerSplit(0, 2).parallelize("tp");
  w2.outerSplit(1, 2).parallelize("tp");
  const z = linear(gelu(linear(x, w1)), w2);
  f.output(z);
  for (const gradient of gradients(f, { of: [z], cotangents: [dz], wrt: [x, w1, w2] }))
    if (gradient !== null) f.output(gradient);
  const explanation = explain(f, { devices: 4, on: "cuda", schedule: "as-written" }, profile);
  const named = explanation.named;
  expect(costlyRefusals(explanation).map(({ op }) => named(op))).toEqual([
    expect.stringMatching(/^w1\.grad = sum\(partial sum of w1\.grad\)$/u),
  ]);
  expect(explanation.refusals.length).toBeGreaterThan(3);
  const hidden = { ...explanation.run, regions: explanation.run.regions.map((row) => ({ ...row, exposed: 0 })) };
  expect(costlyRefusals({ ...explanation, run: hidden })).toEqual([]);
});
