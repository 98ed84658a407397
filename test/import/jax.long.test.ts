import { describe, expect, it } from "vitest";
import { runJax } from "./run-jax.ts";

/** On rank 0: of each kind as few as XLA has after partitioning, or fewer. XLA joins those of mlp-grad in pairs. */
const collectives: Readonly<Record<string, string>> = {
  "mlp-grad": "Allreduce Allreduce Allreduce Allreduce",
  "decode-kv": "Allreduce",
  "gpt-block-train": "Allreduce Allreduce Allreduce Allreduce",
  "llama-block-tp": "Allreduce Allreduce",
  "llama-block-sp": "Allgather ReduceScatter Allgather ReduceScatter",
};

describe("larger models of JAX", () => {
  it.each(Object.entries(collectives))("%s gives what JAX computed, with %s", async (name, moved) => {
    expect(await runJax(name)).toBe(moved);
  });
});
