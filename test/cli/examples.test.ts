/** The examples: their list, and the command that each one shows. examples.sampled.test.ts runs them. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { exampleFiles, examplesFolder } from "../support/example-program.ts";

it("the examples are those of the documentation", () => {
  expect(exampleFiles.map((name) => name.replace(".ts", ""))).toEqual([
    "allgather-matmul",
    "allgather",
    "allreduce",
    "hand-built",
    "hosts/allgather-matmul",
    "hosts/llama",
    "hosts/matmul-allreduce",
    "hosts/matmul-reduce-scatter",
    "matmul-allreduce",
    "matmul-reduce-scatter",
    "mlp",
    "nvfuser/allgather-matmul",
    "nvfuser/matmul-reduce-scatter-p2p",
    "pipeline",
    "reduce-scatter",
    "ring-allgather-matmul",
    "set",
    "transformer/attention",
    "transformer/context-parallel",
    "transformer/data-parallel",
    "transformer/deepseek-block",
    "transformer/fsdp",
    "transformer/gpt-block",
    "transformer/hsdp",
    "transformer/latent-attention",
    "transformer/llama-block",
    "transformer/llama-decode",
    "transformer/mlp",
    "transformer/moe-experts",
    "transformer/pipeline",
    "transformer/ring-attention",
    "transformer/triangle-update",
    "transformer/ulysses",
    "transformer/vocabulary-parallel",
    "transformer/weight-prefetch",
  ]);
});

it.each(exampleFiles)("%s shows its command", (name) => {
  expect(readFileSync(path.join(examplesFolder, name), "utf8")).toContain(`npx braid run examples/${name} --check\n`);
});
