/**
 * Attention by cuDNN on this rank's GPU: every form forward and backward against the oracle, eager and as a graph, with
 * equal bits in all runs; and rates at the sizes of models. Each case has a row, with cuDNN's message if it fails.
 */
import { soloBackend } from "../../bench/harness/gpu-groups.ts";
import { type PartContext, requireNone, type Row, rowOf } from "../../bench/harness/rows.ts";
import { secondsSince } from "../../bench/harness/figures.ts";
import { attentionObstacle } from "../../src/backends/cuda/attention/availability.ts";
import { compile } from "../../src/compile/compile.ts";
import { attentionFlops, isAttention } from "../../src/commands/attention.ts";
import type { PlacedBuffer } from "../../src/commands/buffer.ts";
import type { Program } from "../../src/commands/program.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { sdpa, sdpaBackward } from "../../src/ir/api/ops.ts";
import { tensorBytes } from "../../src/numerics/tensor/host-tensor.ts";
import { randomTensor } from "../../src/oracle/random-inputs.ts";
import { createRandom } from "../../src/support/random.ts";
import { decodeCases, fusedAttentionCases } from "../../test/gpu/attention-cases.ts";
import { checkCase } from "../../test/gpu/check-case.ts";
import { expectationsOf } from "../../test/gpu/expectation.ts";

export async function* attentionRows({ world, only = /(?:)/ }: PartContext): AsyncGenerator<Row> {
  const obstacle = attentionObstacle(world.localRank);
  yield { name: "cuDNN", ok: true, text: obstacle === null ? "runs attention" : `runs no attention: ${obstacle}` };
  // The kernel of few queries needs no cuDNN.
  const cases = [...(obstacle === null ? fusedAttentionCases : []), ...decodeCases].filter(({ name }) =>
    only.test(name),
  );
  for (const { name, build, forward } of cases.filter((_, i) => i % world.worldSize === world.rank)) {
    const options = { rank: 0, devices: 1, on: soloBackend(world, "on"), sameBits: true, attention: "fused" } as const;
    const check = (of: () => Fusion) => async (): Promise<string> => {
      const expectations = expectationsOf(of());
      const start = performance.now();
      // A run of each set of inputs is eager or a capture, the others are replays.
      requireNone(await checkCase(of(), expectations, { ...options, repeat: 3 }));
      return `passed, ${secondsSince(start)} with its plans`;
    };
    const row = await rowOf(name, check(build));
    yield row;
    if (!row.ok) yield await rowOf(`${name}, forward alone`, check(forward));
  }
  if (world.rank > 0 || obstacle !== null) return;
  for (const { name, ...shape } of rated) {
    for (const isBackward of [false, true]) {
      const full = `rate of ${name}, ${isBackward ? "backward" : "forward"}`;
      if (only.test(full)) yield await rowOf(full, () => rateOf(shape, isBackward, world));
    }
  }
}

interface RatedShape {
  readonly q: readonly number[];
  readonly k: readonly number[];
  /** The shape of k if omitted. */
  readonly v?: readonly number[];
  readonly window?: number;
  /** The shape of what is added to the scores. */
  readonly mask?: readonly number[];
  /** True if omitted. */
  readonly isCausal?: boolean;
}

const twoBatches = { q: [2, 32, 4096, 128], k: [2, 32, 4096, 128] };

/** Heads of one GPU of 8: GPT-3, and Llama-3 70B; all heads of Gemma 2 9B, 16 of DeepSeek-V3's, and Mistral's 7B. */
const rated: readonly ({ readonly name: string } & RatedShape)[] = [
  { name: "12 heads of 128, 2048 rows", q: [1, 12, 2048, 128], k: [1, 12, 2048, 128] },
  { name: "8 heads on 1 head of keys, 8192 rows", q: [1, 1, 8, 8192, 128], k: [1, 1, 1, 8192, 128] },
  { name: "16 heads of 256 on 8 of keys, 4096 rows", q: [1, 8, 2, 4096, 256], k: [1, 8, 1, 4096, 256] },
  {
    name: "16 heads of 192, values of 128, 4096 rows",
    q: [1, 16, 4096, 192],
    k: [1, 16, 4096, 192],
    v: [1, 16, 4096, 128],
  },
  ...[undefined, 4096, 1024, 128].map((window) => ({
    name: `32 heads on 8 of keys, 8192 rows, ${window === undefined ? "no window" : `a window of ${window}`}`,
    q: [1, 8, 4, 8192, 128],
    k: [1, 8, 1, 8192, 128],
    ...(window === undefined ? {} : { window }),
  })),
  { name: "2 x 32 heads, 4096 rows", ...twoBatches },
  { name: "2 x 32 heads, 4096 rows, no causal mask", ...twoBatches, isCausal: false },
  { name: "2 x 32 heads, 4096 rows, causal, padded keys", ...twoBatches, mask: [2, 1, 1, 4096] },
  { name: "2 x 32 heads, 4096 rows, padded keys", ...twoBatches, mask: [2, 1, 1, 4096], isCausal: false },
  { name: "2 x 32 heads, 4096 rows, a mask", ...twoBatches, mask: [2, 1, 4096, 4096], isCausal: false },
];
const runs = 20;

async function rateOf(
  { q: queries, k: keys, v: values = keys, window, mask, isCausal = true }: RatedShape,
  isBackward: boolean,
  world: PartContext["world"],
): Promise<string> {
  const f = new Fusion();
  const options = {
    causal: isCausal ? "topLeft" : null,
    window: window ?? null,
    ...(mask === undefined ? {} : { mask: f.input(mask, "bfloat16") }),
  } as const;
  const [q, k, v] = [f.input(queries, "bfloat16"), f.input(keys, "bfloat16"), f.input(values, "bfloat16")];
  if (isBackward) {
    const made = [...queries.slice(0, -1), values.at(-1) ?? 0];
    const results = { output: f.input(made, "bfloat16"), logsumexp: f.input(queries.slice(0, -1), "float") };
    const { dq, dk, dv } = sdpaBackward(f.input(made, "bfloat16"), q, k, v, results, options);
    for (const result of [dq, dk, dv]) f.output(result);
  } else {
    f.output(sdpa(q, k, v, options).output);
  }
  const { program } = compile(f, { devices: 1, on: "cuda", attention: "fused" });
  const group = await soloBackend(world, "on").open({ world: 1, localRanks: [0] });
  try {
    const prepared = await group.prepare(program);
    for (const buffer of inputsOf(program)) prepared.write(buffer.id, inputBytes(buffer));
    await prepared.execute({ runs: 3 });
    const before = program.buffers.filter(({ arena }) => arena === "output").map(({ id }) => prepared.read(id));
    const { deviceMilliseconds = NaN } = await prepared.execute({ runs, deviceTime: true });
    const after = program.buffers.filter(({ arena }) => arena === "output").map(({ id }) => prepared.read(id));
    const differ = before.some((bytes, i) => Buffer.compare(bytes, after[i] ?? bytes) !== 0);
    if (differ) throw new Error("runs differ in their bits");
    prepared.release();
    const flops = program.kernels.reduce((sum, kernel) => sum + (isAttention(kernel) ? attentionFlops(kernel) : 0), 0);
    const milliseconds = deviceMilliseconds / runs;
    return `${milliseconds.toFixed(3)} ms, ${(flops / milliseconds / 1e9).toFixed(0)} TFLOP/s, the same bits in ${runs + 3} runs`;
  } finally {
    await group.close();
  }
}

function inputsOf({ buffers }: Program): readonly PlacedBuffer[] {
  return buffers.filter(({ arena }) => arena === "input");
}

function inputBytes({ id, bytes }: PlacedBuffer): Uint8Array {
  // A block of random numbers again and again: the oracle has no part in rates.
  const block = tensorBytes(randomTensor({ dtype: "bfloat16", shape: [4096] }, createRandom(id + 1), "uniform"));
  const all = new Uint8Array(bytes);
  for (let at = 0; at < bytes; at += block.length) all.set(block.subarray(0, Math.min(block.length, bytes - at)), at);
  return all;
}
