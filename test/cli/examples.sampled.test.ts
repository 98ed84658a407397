/** Every example lowers, and runs and checks, on 1, 2, 3, 4 and 8 devices with 1 and 8 streams. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { exampleFiles, examplesFolder } from "../support/example-program.ts";
import { combinations } from "../support/split-cases.ts";
import { everyNth, runs } from "../support/suite.ts";
import { cli } from "./captured-cli.ts";

// Three devices cut the 8 heads and the 32 features of latent attention differently, which is warned of, and do not
// divide the tokens of a DeepSeek block.
const all = combinations({ name: exampleFiles, devices: [2, 3, 1, 8, 4] }).filter(
  ({ name, devices }) => devices !== 3 || !/latent-attention|deepseek-block/u.test(name),
);
/** Quick takes smaller tensors, on one number of streams, and lowers for the last rank. */
const isQuick = runs({ quick: 1, long: 0 }) === 1;
const streamCounts = isQuick ? [8] : [1, 8];

/** Every n-th for quick. Long has a quarter of the others: each example on one or two of the five numbers of devices. */
const casesOf = (every: number): typeof all => everyNth(all, every).filter((_, i) => isQuick || i % 4 === 0);

/** What is left of an example's own sizes in quick: every extent stays a multiple of chunks and devices. */
const smaller: Readonly<Record<string, (size: number) => number>> = {
  M: (size) => size / 4,
  K: () => 48,
  N: () => 16,
  B: (size) => size / 2,
  L: (size) => size / 2,
  H: (size) => (size < 64 ? size : size / 2),
  FFN: (size) => (size < 64 ? size : size / 2),
};

/** The example's parameters are the first argument of program(). */
function sizesOf(file: string): readonly string[] {
  if (!isQuick) return [];
  const [, parameters = ""] = /\bprogram\(\s*\{([^}]*)\}/u.exec(readFileSync(file, "utf8")) ?? [];
  return [...parameters.matchAll(/\b(\w+): (\d+)/gu)].flatMap(([, name = "", size]) => {
    const less = smaller[name];
    return less === undefined ? [] : ["--set", `${name}=${less(Number(size))}`];
  });
}

/** Two hosts, where an example is about hosts. */
function hostsOf(name: string, devices: number): readonly string[] {
  return name.startsWith("hosts/") && devices % 2 === 0 ? ["--devices-per-host", String(devices / 2)] : [];
}

/** The transformer's examples also give a gradient for x and for each weight. */
const outputCounts: Readonly<Record<string, number>> = {
  "transformer/attention.ts": 6,
  "transformer/context-parallel.ts": 5,
  "transformer/data-parallel.ts": 5,
  "transformer/fsdp.ts": 5,
  "transformer/gpt-block.ts": 14,
  "transformer/hsdp.ts": 3,
  "transformer/llama-block.ts": 9,
  "transformer/llama-decode.ts": 3,
  "transformer/mlp.ts": 6,
  "transformer/ulysses.ts": 4,
  "transformer/vocabulary-parallel.ts": 3,
};

/** What programs without Stream have instead of a loop over streams. A ring of one device has no loop. */
const withoutStream = (devices: number): Readonly<Record<string, string>> => ({
  "hand-built.ts": devices === 1 ? "= matmul\\(" : "FOR i\\d+ from 0 to",
  "hosts/llama.ts": "type=ReduceScatter",
  "transformer/fsdp.ts": "type=Allgather",
  "transformer/hsdp.ts": devices === 1 ? "= linear\\(" : "type=Allgather",
  "transformer/llama-decode.ts": devices === 1 ? "= linear\\(" : "type=Allreduce",
  "transformer/moe-experts.ts": "= grouped_matmul\\(",
  "transformer/pipeline.ts": devices === 1 ? "= linear\\(" : "type=SendRecv",
  "transformer/ring-attention.ts": "= matmul\\(",
  "transformer/weight-prefetch.ts": devices === 1 ? "= linear\\(" : "type=Allgather",
});

interface RunDocument {
  readonly outputs: readonly { readonly fingerprint: string; readonly check?: { readonly ok: boolean } }[];
}

it.each(casesOf(29))("$name lowers for ranks of $devices devices", async ({ name, devices }) => {
  const file = path.join(examplesFolder, name);
  for (const rank of new Set(isQuick ? [devices - 1] : [0, 1 % devices, devices - 1])) {
    const { status, out, err } = await cli("lower", file, "--devices", String(devices), "--rank", String(rank));
    expect([status, err]).toEqual([0, ""]);
    const loop = withoutStream(devices)[name] ?? "FOR streamIdx in ";
    expect(out).toMatch(
      new RegExp(`^\\n(?:// T\\d+ .*\\n)*%HostIrContainer \\{ .*${loop}.*\\} // %HostIrContainer\\n`, "s"),
    );
  }
});

const title = "$name runs on $devices devices as the oracle does, with the same bits on any number of streams";

it.each(casesOf(31))(title, async ({ name, devices }) => {
  const file = path.join(examplesFolder, name);
  const count = name === "transformer/pipeline.ts" ? 2 + 2 * devices : (outputCounts[name] ?? 1);
  const fingerprints = new Set<string>();
  for (const [i, streams] of streamCounts.entries()) {
    // Without a BLAS: its bits depend on whether a product is done in parts, which depends on who is idle.
    const plain = ["--blas", "off", "--json", ...sizesOf(file), ...hostsOf(name, devices)];
    // The other runs have the bits of the first, which is checked.
    const checked = i === 0 ? ["--check"] : [];
    const args = ["--devices", String(devices), "--schedule", `streams=${streams}`, ...plain, ...checked];
    const { status, out, err } = await cli("run", file, ...args);
    expect([status, err]).toEqual([0, ""]);
    const { outputs } = JSON.parse(out) as RunDocument;
    expect(outputs).toHaveLength(count);
    for (const [j, { fingerprint, check }] of outputs.entries()) {
      expect(check?.ok).toBe(i === 0 ? true : undefined);
      fingerprints.add(`${j} ${fingerprint}`);
    }
  }
  expect(fingerprints.size).toBe(count);
});

const withAttention = ["attention", "ring-attention"];

it.each(everyNth(combinations({ name: withAttention, seed: ["0", "1", "2"] }), 3))(
  "transformer/$name with attention as ops gives what its reference does, seed $seed",
  async ({ name, seed }) => {
    const file = path.join(examplesFolder, "transformer", `${name}.ts`);
    const { status, out, err } = await cli(
      "run",
      file,
      "--devices",
      "4",
      "--schedule",
      "attention=ops",
      "--check",
      "--seed",
      seed,
    );
    expect([status, err], out).toEqual([0, ""]);
  },
);
