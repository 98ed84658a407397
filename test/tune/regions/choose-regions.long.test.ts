/** The schedule that is chosen for each region of a transformer's block. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { MachineProfile } from "@braid-compiler/braid";
import { wholeBlock } from "../../../bench/compare/block/block-fusion.ts";
import { parseProfile } from "../../../src/simulate/parse-profile.ts";
import { simulate } from "../../../src/simulate/simulate.ts";
import { overlapOf } from "../../../src/trace/overlap.ts";
import { choose } from "../../../src/tune/choose/choose.ts";

function profileOf(name: string): MachineProfile {
  return parseProfile(readFileSync(new URL(`../../../profiles/${name}.json`, import.meta.url), "utf8"), name);
}

describe("a block of llama-3-8b with shared tokens, without chunks", () => {
  const chosenFor = (pass: "forward" | "forward+backward") => {
    const problem = { primitive: "block", model: "llama-3-8b", cut: "tp-sp", pass, dtype: "bfloat16" } as const;
    const { fusion } = wholeBlock({ ...problem, devices: 2 }, { chunks: 1, all: false });
    return choose(fusion, { devices: 2, verify: "off" }, profileOf("2xH100"));
  };

  it("has loops over the devices in all regions of the forward pass, which hide nearly all communication", () => {
    const { chosen, regions, compilation, margin } = chosenFor("forward");
    expect(chosen.name).toBe("by region");
    expect(margin).toBe(0.01);
    expect(regions.map((region) => region.chosen.lowering.deviceLoops)).toEqual([true, true, true, true]);
    const { trace } = simulate(compilation.program, profileOf("2xH100"), { graph: true });
    for (const { overlap } of overlapOf(compilation.program, trace)) expect(overlap).toBeGreaterThan(0.95);
  });

  it("has loops in most regions of both passes, and the others serial", () => {
    const { chosen, regions, milliseconds, considered } = chosenFor("forward+backward");
    expect(chosen.name).toBe("by region");
    const loops = regions.filter((region) => region.chosen.lowering.deviceLoops === true);
    expect(loops.length).toBeGreaterThanOrEqual(5);
    expect(loops.length).toBeLessThan(regions.length);
    const without = considered.find(({ candidate }) => candidate.name === "serial");
    expect(milliseconds).toBeLessThan(without?.milliseconds ?? 0);
  });
});

describe.each(["llama-3-8b", "llama-3-70b"] as const)("both passes of %s in chunks", (model) => {
  const problem = { primitive: "block", model, cut: "tp-sp", pass: "forward+backward", dtype: "bfloat16" } as const;
  const { fusion } = wholeBlock({ ...problem, devices: 2 }, { chunks: 4, all: true });

  it("stay serial: less is predicted than is known to be a gain", () => {
    const { chosen, considered, reason } = choose(fusion, { devices: 2, verify: "off" }, profileOf("2xH100"));
    expect(chosen.name, reason).toBe("serial");
    const names = considered.map(({ candidate }) => candidate.name);
    expect(names).toEqual(expect.arrayContaining(["by region", "loops by region", "serial"]));
    const [first] = considered;
    expect(first?.candidate.name).not.toBe("serial");
    expect(first?.margin).toBe(0.05);
  });

  it("take the loops of the forward pass where the library is slower", () => {
    const measured = profileOf("2xH100");
    const transfers = measured.transfers.map((each) => ({
      ...each,
      timings: each.timings.map(({ bytes, microseconds }) => ({ bytes, microseconds: 2 * microseconds })),
    }));
    const options = { devices: 2, verify: "off" } as const;
    const { chosen, considered, reason, regions } = choose(fusion, options, { ...measured, transfers });
    expect(chosen.name, reason).not.toBe("serial");
    const loops = regions.map((region) => region.chosen.lowering.overlap !== false);
    expect(loops).toEqual([true, true, false, false, false, false]);
    // The loops alone are worth it: the regions of the backward pass would not have to change.
    const [alone, serial] = ["loops by region", "serial"].map((name) =>
      considered.find(({ candidate }) => candidate.name === name),
    );
    expect((alone?.milliseconds ?? NaN) * (1 + (alone?.margin ?? NaN))).toBeLessThan(serial?.milliseconds ?? NaN);
  });
});
