/** Programs of many equal layers, explained by few of them, beside the same programs explained whole. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { explain, type Explanation } from "@braid-compiler/braid";
import { link } from "../../src/commands/link/link.ts";
import type { Program } from "../../src/commands/program.ts";
import { compileToExplain } from "../../src/explain/explain.ts";
import { furtherPeakBytes } from "../../src/explain/layer-memory.ts";
import { equalEntries, equalRegions, withoutNumbers } from "../../src/explain/layers.ts";
import { serialOf } from "../../src/explain/serial-program.ts";
import { parseProfile } from "../../src/simulate/parse-profile.ts";
import { withFewerLayers } from "../../src/tune/regions/fewer-layers.ts";
import { buildLists } from "../machine/list-builder.ts";
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
    near(({ interval }) => (interval?.high ?? 0) / (interval?.low ?? 1));
    expect(short.run.loopedGemms / whole.run.milliseconds).toBeCloseTo(
      whole.run.loopedGemms / whole.run.milliseconds,
      2,
    );
    // With options that are given, changes of few layers would be held against the time of all.
    expect(short.alternatives).toEqual(schedule === "auto" ? [] : null);
    // Gaps between allocations are not those of more layers.
    expect(Math.abs(short.peakBytes / whole.peakBytes - 1)).toBeLessThan(0.02);
    expect(short.run.exposed / whole.run.milliseconds).toBeCloseTo(whole.run.exposed / whole.run.milliseconds, 2);
    expect(short.run.causes.reduce((sum, { milliseconds }) => sum + milliseconds, 0)).toBeCloseTo(short.run.exposed, 6);
  });

  it("have as many regions, moves and reasons", () => {
    expect(equalRegions(short).length).toBeLessThan(whole.run.regions.length / 4);
    expect(regionCount(short)).toBe(whole.run.regions.length);
    expect(regionCount(whole)).toBe(whole.run.regions.length);
    const reasons = (explanation: Explanation): readonly (readonly [string, number])[] =>
      equalEntries(
        explanation,
        ({ reshardings }) => reshardings ?? [],
        ({ reason }) => withoutNumbers(reason),
      ).map(({ entries, count }) => [withoutNumbers(entries[0]?.reason ?? ""), count]);
    expect(new Map(reasons(short))).toEqual(new Map(reasons(whole)));
  });
});

it("are compared with the serial form that was among the choices", () => {
  const fusion = mlpLayers(16, [4096, 2048, 4096], "bfloat16");
  const options = { devices: 2, on: "cuda", verify: "off" } as const;
  const { layers } = compileToExplain(fusion, options, profile, withFewerLayers(fusion.data()));
  const { source, serial = null } = layers?.few ?? { source: fusion };
  expect(serial).not.toBeNull();
  expect(serial).toEqual(serialOf(source, options));
});

it("need most where the backward pass begins, though few layers need most before", () => {
  const of = (layers: number): Program =>
    link(
      buildLists(1, (list) => {
        const scratch = (bytes: number): void => {
          const view = list.temporary([bytes / 4]);
          list.alloc(0, view);
          list.free(0, view);
        };
        scratch(8192);
        const saved = Array.from({ length: layers }, () => {
          const view = list.temporary([256]);
          list.alloc(0, view);
          scratch(2048);
          return view;
        });
        for (const view of saved.toReversed()) {
          scratch(512);
          list.free(0, view);
        }
      }),
    );
  const bytes = ({ ranks }: Program): number => ranks[0]?.arenaBytes.temporary ?? 0;
  expect([2, 3, 24].map((layers) => bytes(of(layers)))).toEqual([8192, 8192, 24 * 1024 + 2048]);
  expect(furtherPeakBytes(of(2), of(3), 21)).toBe(24 * 1024 + 2048);
});

it("is explained whole where few layers repeat", () => {
  const fusion = pairs(2, 64, [64, 64, 64, 64], "bfloat16");
  const { layers } = explain(fusion, { devices: 2, on: "cuda", fewerLayers: true, schedule: "as-written" }, profile);
  expect(layers).toBeNull();
});
