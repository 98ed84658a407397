/** What the simulator says of the blocks that were measured on 2 x H100. docs/simulation.md has the figures. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { measuredBlocks } from "../../bench/measured-rows.ts";
import { planBlock } from "../../src/bench/block/plan-block.ts";
import { parseProfile } from "../../src/simulate/parse-profile.ts";
import { simulate } from "../../src/simulate/simulate.ts";

const root = path.resolve(import.meta.dirname, "../..");
// Of the machine of that run; it has no rates of attention.
const file = path.join(root, "bench/results/block-2xH100-profile.json");
const profile = parseProfile(readFileSync(file, "utf8"), file);
const rows = measuredBlocks(path.join(root, "bench/results/block-2xH100.csv"));

it.each(["compute-only", "serial"] as const)(
  "%s: within 8 %, and 4 % in the mean",
  (name) => {
    const own = rows.filter(({ implementation }) => implementation.name === name);
    expect(own).toHaveLength(16);
    const errors = own.map(({ implementation, problem, milliseconds }) => {
      const { program } = planBlock(implementation, problem, { on: "cuda", profile }).compilation;
      return Math.abs(Math.log(simulate(program, profile, { graph: true }).milliseconds / milliseconds));
    });
    expect(Math.max(...errors)).toBeLessThan(0.08);
    expect(errors.reduce((sum, each) => sum + each, 0) / errors.length).toBeLessThan(0.043);
  },
  120_000,
);
