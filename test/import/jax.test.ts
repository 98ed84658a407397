import { describe, expect, it } from "vitest";
import { runJax } from "./run-jax.ts";

/** On rank 0: of each kind as few as XLA has after partitioning, or fewer. */
const collectives: Readonly<Record<string, string>> = {
  "mlp-tp": "Allreduce",
  "mlp-sp": "Allgather ReduceScatter",
  "mlp-dp-tp": "Allreduce",
  "shard-map-mlp": "Allgather ReduceScatter",
  "shard-map-moe": "AllToAll AllToAll",
  "embed-xent": "Allreduce Allreduce Allreduce Allreduce",
  "xent-grad": "Allreduce Allreduce Allreduce Allreduce",
};

describe("models of JAX", () => {
  it.each(Object.entries(collectives))("%s gives what JAX computed, with %s", async (name, moved) => {
    expect(await runJax(name)).toBe(moved);
  });
});
