/** Other machines: attention runs at the rate of GEMMs, where it was measured and where it was not. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { explain, DeviceMesh, Fusion, sdpa } from "@braid-compiler/braid";
import { isTooSmall } from "../../src/explain/explain.ts";
import { changed } from "../../src/explain/what-if.ts";
import { parseProfile } from "../../src/simulate/parse-profile.ts";

const profile = parseProfile(readFileSync(new URL("../../profiles/2xH100.json", import.meta.url), "utf8"), "2xH100");

it.each(["measured", "not measured"])("attention that was %s", (name) => {
  const { attention, ...without } = profile;
  expect(attention).toBeDefined();
  const machine = name === "measured" ? profile : without;
  const f = new Fusion();
  const [q, k, v] = [0, 1, 2].map(() => f.input([2, 32, 8192, 128], "bfloat16"));
  if (q === undefined || k === undefined || v === undefined) return;
  f.output(sdpa(q, k, v).output);
  for (const tensor of [q, k, v]) tensor.setDeviceMesh(DeviceMesh.range(2)).outerSplit(1, 2).parallelize("DIDx");
  const options = { devices: 2, on: "cuda", schedule: "as-written" } as const;
  const explanation = explain(f, options, machine);
  expect(isTooSmall(explanation)).toBe(false);
  const twice = explain(f, options, changed(machine, new Map([["gemm", "2x"]])));
  expect(explanation.run.milliseconds / twice.run.milliseconds).toBeGreaterThan(1.8);
});
