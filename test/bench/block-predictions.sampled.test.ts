/** What the simulator says of the blocks that were measured on four machines. docs/simulation.md has the figures. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { measuredBlocks } from "../../bench/measured-rows.ts";
import { planBlock } from "../../bench/compare/block/plan-block.ts";
import { parseProfile } from "../../src/simulate/parse-profile.ts";
import { simulate } from "../../src/simulate/simulate.ts";
import { everyNth } from "../support/suite.ts";

const root = path.resolve(import.meta.dirname, "../..");
// Of a machine that is none of the four.
const file = path.join(root, "profiles/2xH100.json");
const profile = parseProfile(readFileSync(file, "utf8"), file);
const results = ["block", "block-again", "block-third", "block-fourth"].map((name) =>
  measuredBlocks(path.join(root, `bench/results/${name}-2xH100.csv`)),
);

it.each(everyNth(["compute-only", "serial"] as const, 2))(
  "%s: within 8 %, 4 % in the mean on each machine, and neither low nor high",
  (name) => {
    const predicted = new Map<string, number>();
    const medians = results.map((all) => {
      const errors = all
        .filter(({ implementation }) => implementation.name === name)
        .map(({ implementation, problem, milliseconds }) => {
          const key = JSON.stringify(problem);
          const time =
            predicted.get(key) ??
            simulate(planBlock(implementation, problem, { on: "cuda", profile }).compilation.program, profile, {
              graph: true,
            }).milliseconds;
          predicted.set(key, time);
          return Math.log(milliseconds / time);
        })
        .sort((a, b) => a - b);
      expect(errors).toHaveLength(16);
      const sizes = errors.map(Math.abs);
      expect(Math.max(...sizes)).toBeLessThan(0.08);
      expect(sizes.reduce((sum, each) => sum + each, 0) / errors.length).toBeLessThan(0.04);
      return errors[8] ?? NaN;
    });
    expect(Math.max(...medians.map(Math.abs))).toBeLessThan(0.035);
  },
  120_000,
);
