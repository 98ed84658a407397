/** No simulated schedule is faster than the least time, and what is left out is not chosen. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { compile, type CompileOptions, type Fusion, type MachineProfile, parseProfile } from "@braid-compiler/braid";
import { buildPrimitive } from "../../../bench/compare/primitives.ts";
import { candidateStreams, copyLoops } from "../../../src/tune/choose/candidates.ts";
import { considerSchedules } from "../../../src/tune/choose/consider.ts";
import { leastTime } from "../../../src/tune/choose/least-time.ts";
import { layeredFusions } from "../../support/layered-fusions.ts";

const file = "profiles/4xH200.json";
const measured = parseProfile(readFileSync(file, "utf8"), file);

/** No collective of the library is fast, so that nothing is left out. */
const slowLibrary: MachineProfile = {
  ...measured,
  transfers: measured.transfers.map((each) => ({
    ...each,
    timings: each.timings.map(({ bytes, microseconds }) => ({ bytes, microseconds: 1000 * microseconds })),
  })),
};

/** Links that are slow for one size only: two copies of half the bytes are faster than one. */
const dented: MachineProfile = {
  ...slowLibrary,
  peerCopies: slowLibrary.peerCopies.map((timing, i) => (i < 3 ? timing : { ...timing, microseconds: 5000 })),
};

const problems: readonly (readonly [string, Fusion, Partial<CompileOptions>])[] = [
  ["a layer of gathers", layeredFusions.gathers(1, 4), {}],
  ["a layer of scatters", layeredFusions.scatters(1, 3), { insertReshardingAfter: true }],
  ...[512, 8192].map(
    (m) =>
      [
        `allgather + matmul of ${m} rows`,
        buildPrimitive(
          "rotated",
          { primitive: "tp-columnwise", devices: 4, m, n: 2048, k: 4096, dtype: "bfloat16" },
          { chunks: 4, outputs: 1 },
        ),
        {},
      ] as const,
  ),
];

describe.each(problems)("%s", (_, fusion, options) => {
  const devices = Math.max(...fusion.data().tensors.flatMap(({ mesh }) => mesh?.devices ?? [])) + 1;
  const rootOf = (lowering: Partial<CompileOptions>) =>
    compile(fusion, { devices, streams: candidateStreams, ...options, ...lowering, verify: "off" }).recorded;

  it.each([
    ["measured", slowLibrary],
    ["dented", dented],
  ])("is never faster with links that are %s", (_name, profile) => {
    const { candidates, leftOut } = considerSchedules(fusion, { devices, ...options }, profile);
    expect(leftOut).toEqual([]);
    // These programs have loops of their own.
    for (const { name, lowering } of copyLoops.filter((loop) => loop.lowering.deviceLoops !== true)) {
      const least = leastTime(rootOf(lowering), profile);
      expect(least).toBeGreaterThan(0);
      const own = candidates.filter(({ candidate }) => candidate.name.startsWith(name));
      expect(own.length).toBeGreaterThan(0);
      expect(Math.min(...own.map(({ milliseconds }) => milliseconds))).toBeGreaterThanOrEqual(least);
    }
  });
});
