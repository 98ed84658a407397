/** `braid bench block` with every small model, cut and pass, and the committed configuration for every model. */
import path from "node:path";
import { expect, it } from "vitest";
import { readBenchConfig } from "../../bench/compare/bench-config.ts";
import { planBench } from "../../bench/compare/bench-plan.ts";
import { isBlock } from "../../bench/compare/bench-problem.ts";
import { planBlock } from "../../bench/compare/block/plan-block.ts";
import { cli } from "../cli/captured-cli.ts";

it("has the right results for every small model, cut and pass, in bfloat16", async () => {
  const args = ["--set", "model=small-llama,small-gpt,dtype=bfloat16", "--devices", "2", "--repeat", "1"];
  const { status, out, err } = await cli("bench", "block", ...args, "--check", "--impl", "braid;chunks=2", "--json");
  expect(status, err).toBe(0);
  const { rows } = JSON.parse(out) as { readonly rows: readonly { readonly partOfBound: number | null }[] };
  expect(rows).toHaveLength(2 * 2 * 2 * 3);
  for (const { partOfBound } of rows) expect(partOfBound).toBeLessThanOrEqual(1);
}, 60_000);

it("compiles the committed configuration's schedules for every model on two devices", async () => {
  const config = await readBenchConfig(path.resolve(import.meta.dirname, "../../bench/configs/block.json"));
  const plan = planBench(null, { ...config, on: "cuda", seed: 0, timeout: 60, profile: null }, 2);
  for (const problem of plan.problems.filter(isBlock)) {
    for (const implementation of plan.implementations) {
      if (implementation.kind === "peer" || implementation.options.scheduleChoice === "auto") continue;
      const { compilation } = planBlock(implementation, problem, { on: "cuda", profile: null });
      expect(compilation.report?.ok, implementation.said).toBe(true);
    }
  }
}, 60_000);
