/**
 * No rank receives more than with the collectives that XLA leaves after partitioning, of the same files for as many
 * devices. Those were read from the optimized HLO of jaxlib 0.10.2's CPU compiler, with Shardy. An all-reduce that is
 * then sliced counts as a reduce-scatter: XLA's GPU compiler makes one of it.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { compile, importModel } from "@braid-compiler/braid";
import { mostReceived } from "../routes/received-bytes.ts";

/** All tensors are float32; `n` ranks each receive the least of a ring. */
const gathered = (elements: number, n = 4): number => (elements * 4 * (n - 1)) / n;
const scattered = gathered;
const exchanged = gathered;
const reduced = (elements: number, n = 4): number => 2 * gathered(elements, n);

const rows = 32 * 64;

const receivedByXla: Readonly<Record<string, number>> = {
  "mlp-tp": reduced(rows),
  "mlp-sp": gathered(rows) + scattered(rows),
  "mlp-dp-tp": reduced(16 * 64),
  "mlp-grad": reduced(16 * 64) + reduced(1 + 2 * 64 * 64, 2),
  "llama-block-tp": 2 * reduced(rows),
  // Two of the gathers are of weights.
  "llama-block-sp": 4 * gathered(rows) + 2 * exchanged(2 * 16 * 8) + 2 * scattered(rows),
  "gpt-block-train": 4 * reduced(rows),
  "shard-map-mlp": gathered(rows) + scattered(rows),
  "shard-map-moe": 2 * exchanged(4 * 2 * 8 * 64),
  "embed-xent": reduced(rows) + reduced(2 * 16) + reduced(2 * 2 * 16),
  "xent-grad": 4 * reduced(8 * 16),
  "decode-kv": reduced(2 * 64),
};

it.each(Object.entries(receivedByXla))("%s: no more than %i bytes", async (name, bytes) => {
  const text = readFileSync(path.join(import.meta.dirname, "jax", `${name}.mlir`), "utf8");
  const { fusion, devices } = await importModel(text, { file: `${name}.mlir` });
  const { program } = compile(fusion, { devices: devices ?? 0, verify: "off" });
  expect(mostReceived(program)).toBeLessThanOrEqual(bytes);
});
