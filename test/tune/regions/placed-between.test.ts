/** A tensor between two regions that lowering lets lie otherwise than it was placed. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { add, DeviceMesh, Fusion, gelu, linear } from "@braid-compiler/braid";
import { parseProfile } from "../../../src/simulate/parse-profile.ts";
import { choose } from "../../../src/tune/choose/choose.ts";

const file = "profiles/4xH200.json";
const profile = parseProfile(readFileSync(file, "utf8"), file);

function mlp(hasMesh: boolean): Fusion {
  const f = new Fusion();
  const [x, up, down] = [
    f.input([8192, 8192], "bfloat16"),
    f.input([28672, 8192], "bfloat16"),
    f.input([8192, 28672], "bfloat16"),
  ];
  const mesh = DeviceMesh.range(4);
  for (const tensor of [x, up, down]) tensor.setDeviceMesh(mesh);
  for (const [tensor, axis] of [
    [x, 0],
    [up, 0],
    [down, 1],
  ] as const)
    // prettier-ignore
    tensor.outerSplit(axis, 4).parallelize("DIDx");
  const hidden = gelu(linear(x, up));
  if (hasMesh) hidden.setDeviceMesh(mesh);
  f.output(add(x, linear(hidden, down)));
  return f;
}

it("does not cost the gather that regions apart would need", () => {
  const [without, on] = [false, true].map((hasMesh) =>
    choose(mlp(hasMesh), { devices: 4, on: "cuda", backend: "cuda", verify: "off" }, profile),
  );
  expect(without?.regions.length).toBeGreaterThan(1);
  expect(on?.milliseconds).toBeCloseTo(without?.milliseconds ?? 0, 6);
  expect(on?.chosen.name).toBe(without?.chosen.name);
});
