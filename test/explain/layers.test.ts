/** Programs of many equal layers, explained by few of them, beside the same programs explained whole. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { explain, type Explanation } from "@braid-compiler/braid";
import { equalEntries, equalRegions, withoutNumbers } from "../../src/explain/layers.ts";
import { parseProfile } from "../../src/simulate/parse-profile.ts";
import { mlpLayers, pairs } from "../tune/regions/pairs.ts";

const profile = parseProfile(readFileSync(new URL("../../profiles/2xH200.json", import.meta.url), "utf8"), "2xH200");

function regionCount(explanation: Explanation): number {
  return equalRegions(explanation).reduce((sum, { count }) => sum + count, 0);
}

describe.each(["as-written", "auto"] as const)("16 layers, %s", (schedule) => {
  const fusion = mlpLayers(16, [4096, 2048, 4096], "bfloat16");
  const options = { devices: 2, on: "cuda", schedule, verify: "off" } as const;
  const whole = explain(fusion, options, profile);
  const short = explain(fusion, { ...options, fewerLayers: true }, profile);

  it("take what all of them take", () => {
    expect(whole.layers).toBeNull();
    expect(short.layers?.missing).toBeGreaterThan(10);
    const near = (of: (each: Explanation) => number): void => expect(of(short) / of(whole)).toBeCloseTo(1, 2);
    near(({ run }) => run.milliseconds);
    near(({ run }) => run.floor.compute);
    near(({ run }) => run.floor.communication);
    near(({ run }) => run.floor.chain);
    near(({ run }) => run.overlap.kernels);
    near(({ run }) => run.overlap.communication);
    near(({ serial }) => serial ?? 0);
    // Memory is used again in other places.
    expect(short.peakBytes / whole.peakBytes).toBeCloseTo(1, 1);
    expect(short.run.exposed / whole.run.milliseconds).toBeCloseTo(whole.run.exposed / whole.run.milliseconds, 2);
    expect(short.run.causes.reduce((sum, { milliseconds }) => sum + milliseconds, 0)).toBeCloseTo(short.run.exposed, 6);
  });

  it("have as many regions, moves and reasons", () => {
    expect(equalRegions(short).length).toBeLessThan(whole.run.regions.length / 4);
    expect(regionCount(short)).toBe(whole.run.regions.length);
    expect(regionCount(whole)).toBe(whole.run.regions.length);
    const reasons = ({ reshardings, layers }: Explanation): readonly (readonly [string, number])[] =>
      equalEntries(reshardings ?? [], layers?.few.reshardings ?? [], layers?.missing ?? 0, ({ reason }) =>
        withoutNumbers(reason),
      ).map(({ entries, count }) => [withoutNumbers(entries[0]?.reason ?? ""), count]);
    expect(new Map(reasons(short))).toEqual(new Map(reasons(whole)));
  });
});

it("is explained whole where few layers repeat", () => {
  const fusion = pairs(2, 64, [64, 64, 64, 64], "bfloat16");
  const { layers } = explain(fusion, { devices: 2, on: "cuda", fewerLayers: true, schedule: "as-written" }, profile);
  expect(layers).toBeNull();
});
