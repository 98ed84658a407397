/**
 * Attention of few queries to many keys, as in a step of decoding, on the tensor cores of Ampere and later GPUs.
 *
 * The heads of queries that share keys, and their queries, are the rows of tiles of 16. A block has one tile and a run
 * of keys: its four warps take 16 keys in turn, copy them and their values to shared memory two tiles ahead, multiply,
 * and keep the largest score, the sum and the weighted values of each row (online softmax). The block adds its warps'.
 * If runs are several, a second kernel adds the blocks', always in the same order.
 *
 * Source: Dao et al., Flash-Decoding for long-context inference, 2023.
 */
import type { SdpaKernel } from "../../../commands/kernel.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import type { AttentionLayout, Four, PlacedOperand } from "../attention/layout.ts";
import type { DeviceTarget } from "../ops/planning.ts";
import { kernelName, type KernelSource } from "./kernel-source.ts";

const tileRows = 16;
const warps = 4;
const threads = 32 * warps;
/** Keys that the warps of a block take at a time. */
const blockKeys = 16 * warps;
const stages = 3;
/** Runs have at least as many keys, or their sums would take longer than they save. */
const fewestKeys = 2 * blockKeys;
/** That a multiprocessor runs at once. */
const blocksEach = 2;

export interface DecodeKernels {
  /** Parameters: q, k, v, the lengths, the output, logsumexp, and scratch for `partBytes` if there is `sum`. */
  readonly parts: KernelSource;
  /** Parameters: the output, logsumexp, scratch. Null if `parts` writes the results. */
  readonly sum: KernelSource | null;
  readonly partBytes: number;
}

export function decodeKernels(
  { causal, window, scale, inputs }: SdpaKernel,
  layout: AttentionLayout,
  type: "half" | "bfloat16",
  { multiprocessors }: DeviceTarget,
): DecodeKernels {
  const [q, k, v, lengths] = [0, 1, 2, 3].map((i) => at(layout.inputs, i));
  const [output, logsumexp] = [at(layout.outputs, 0), at(layout.outputs, 1)];
  const [batches, heads, queries, d] = dimsOf(q);
  const [, keyHeads, keys] = dimsOf(k);
  const e = dimsOf(v)[3];
  const rows = (heads / keyHeads) * queries;
  const tiles = Math.ceil(rows / tileRows);
  const blocks = batches * keyHeads * tiles;
  const run = keysOfRun(keys, (runs) => Math.ceil((blocks * runs) / (blocksEach * multiprocessors)) / runs);
  const runs = Math.ceil(keys / run);
  const numbers = {
    D: d,
    E: e,
    KEY_HEADS: keyHeads,
    SHARING: heads / keyHeads,
    QUERIES: queries,
    ROWS: rows,
    TILES: tiles,
    KEYS: keys,
    RUN: run,
    RUNS: runs,
    STAGES: stages,
    TOP_LEFT: causal === "topLeft" ? 1 : 0,
    BOTTOM_RIGHT: causal === "bottomRight" ? 1 : 0,
    WINDOW: window ?? 0,
    ...stepsOf("Q", q),
    ...stepsOf("K", k),
    ...stepsOf("V", v),
    ...stepsOf("N", lengths),
    ...stepsOf("O", output),
    ...stepsOf("S", logsumexp),
  };
  const head = [
    ...Object.entries(numbers).map(([name, value]) => `#define ${name} ${value}`),
    `#define SCALE ${Math.fround(scale * Math.LOG2E)}f`,
    `#define TYPE "${type === "half" ? "f16" : "bf16"}"`,
    `typedef ${dtypes[at(inputs, 3).dtype].cuda.c} Length;`,
    common,
  ];
  const tileBytes = 2 * tileRows * (d + e + 16);
  return {
    parts: {
      text: `${[...head, partsBody].join("\n")}\n`,
      grid: [batches * keyHeads, runs, tiles],
      block: [threads, 1, 1],
      parameters: [],
      sharedBytes: warps * stages * tileBytes,
    },
    sum:
      runs === 1
        ? null
        : {
            text: `${[...head, sumBody].join("\n")}\n`,
            grid: [blocks * tileRows, 1, 1],
            block: [Math.ceil(e / 32) * 32, 1, 1],
            parameters: [],
          },
    partBytes: runs === 1 ? 0 : blocks * tileRows * runs * (e + 2) * 4,
  };
}

/** The keys of a run: as many runs as take the shortest time, or one in 32 more, and no more runs than that needs. */
function keysOfRun(keys: number, timeOf: (runs: number) => number): number {
  const counts = Array.from({ length: Math.ceil(keys / fewestKeys) }, (_, i) => i + 1);
  const least = counts.reduce((time, runs) => Math.min(time, timeOf(runs)), Infinity);
  const runs = counts.find((count) => timeOf(count) <= least * (1 + 1 / 32)) ?? 1;
  return Math.ceil(keys / runs / blockKeys) * blockKeys;
}

function dimsOf(operand: PlacedOperand | undefined): Four {
  return operand?.dims ?? [1, 1, 1, 1];
}

/** Steps along the batch, heads and rows. */
function stepsOf(name: string, operand: PlacedOperand | undefined): Readonly<Record<string, string>> {
  const { dims, strides } = operand ?? { dims: [1, 1, 1, 1], strides: [0, 0, 0, 0] };
  const step = (axis: number): string => `${at(dims, axis) === 1 ? 0 : at(strides, axis)}ll`;
  return { [`${name}_BATCH`]: step(0), [`${name}_HEAD`]: step(1), [`${name}_ROW`]: step(2) };
}

const common = `typedef unsigned short u16;
typedef unsigned u32;
#define DEVICE static __device__ __forceinline__
#define HEAD_OF(key_head, row) ((key_head) * SHARING + (row) / QUERIES)
#define PLACE(name, batch, head, row) ((batch) * name##_BATCH + (head) * name##_HEAD + (row) * name##_ROW)
#define NONE (-__int_as_float(0x7f800000))

DEVICE u16 rounded(float x) {
  u16 y;
  asm("cvt.rn." TYPE ".f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
/** What is subtracted from scores: a row without finite ones has none. */
DEVICE float shift_of(float most) { return most == NONE ? 0.0f : most; }
/** Stores an element of a row, whose sum has the factor 2^-most. */
DEVICE void store(u16 *output, float *logsumexp, int batch, int head, int query, int column, float x, float sum, float most) {
  output[PLACE(O, batch, head, query) + column] = rounded(sum == 0.0f ? 0.0f : x / sum);
  if (column == 0) logsumexp[PLACE(S, batch, head, query)] = (shift_of(most) + log2f(sum)) * 0.693147180559945f;
}`;

const partsBody = `#define K_LINE (2 * D + 16)
#define V_LINE (2 * E + 16)
#define TILE_BYTES (16 * (K_LINE + V_LINE))

DEVICE u32 packed(float low, float high) {
  u32 x;
  asm("cvt.rn." TYPE "x2.f32 %0, %1, %2;" : "=r"(x) : "f"(high), "f"(low));
  return x;
}
DEVICE void multiply(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
/** Copies 16 lines of \`columns\` elements, those after the last key as zeros. */
template <int columns> DEVICE void copy(u32 to, const u16 *from, long long step, int key, int stop) {
  const int vectors = columns / 8, line = 2 * columns + 16;
#pragma unroll
  for (int i = threadIdx.x % 32; i < 16 * vectors; i += 32) {
    const int row = i / vectors, column = i % vectors, own = min(key + row, KEYS - 1);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
      : : "r"(to + row * line + column * 16), "l"(from + own * step + column * 8), "r"(key + row < stop ? 16 : 0) : "memory");
  }
}
struct Seen { int first, stop; };
/** The keys that a row sees: from the first one on, before the last. */
DEVICE Seen seen_by(const Length *lengths, int batch, int head, int query) {
  const long long length = (long long)lengths[PLACE(N, batch, head, 0)];
  long long limit = length < KEYS ? length : KEYS;
  const long long last = TOP_LEFT ? query + 1 : BOTTOM_RIGHT ? length - QUERIES + query + 1 : limit;
  limit = last < limit ? last : limit;
  const long long first = WINDOW > 0 ? last - WINDOW : 0;
  return {first > 0 ? (int)(first < KEYS ? first : KEYS) : 0, limit > 0 ? (int)limit : 0};
}

extern "C" __global__ void __launch_bounds__(${threads})
${kernelName}(const u16 *q, const u16 *k, const u16 *v, const Length *lengths, u16 *output, float *logsumexp, float *parts) {
  extern __shared__ __align__(16) unsigned char memory[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int batch = blockIdx.x / KEY_HEADS, key_head = blockIdx.x % KEY_HEADS, first = blockIdx.z * 16;
  Seen seen[2];
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const int row = first + lane / 4 + 8 * i;
    seen[i] = row < ROWS ? seen_by(lengths, batch, HEAD_OF(key_head, row), row % QUERIES) : Seen{KEYS, 0};
  }
  const u32 least = __reduce_min_sync(0xffffffffu, (u32)min(seen[0].first, seen[1].first));
  const int last = (int)__reduce_max_sync(0xffffffffu, (u32)max(seen[0].stop, seen[1].stop)), run = blockIdx.y * RUN;
  const int start = max(run, (int)least / ${blockKeys} * ${blockKeys}), stop = min(run + RUN, last);

  // Rows of q, as the tensor cores take them.
  u32 a[D / 16][4];
#pragma unroll
  for (int i = 0; i < D / 16 * 4; i++) {
    const int row = first + lane / 4 + i % 2 * 8, column = i / 4 * 16 + lane % 4 * 2 + i / 2 % 2 * 8;
    const u16 *own = q + PLACE(Q, batch, HEAD_OF(key_head, row), row % QUERIES) + column;
    a[i / 4][i % 4] = row < ROWS ? *(const u32 *)own : 0;
  }
  k += PLACE(K, batch, key_head, 0);
  v += PLACE(V, batch, key_head, 0);
  const u32 own = (u32)__cvta_generic_to_shared(memory) + warp * STAGES * TILE_BYTES;
  const auto load = [&](int stage, int key) {
    if (key < stop) {
      copy<D>(own + stage * TILE_BYTES, k, K_ROW, key, stop);
      copy<E>(own + stage * TILE_BYTES + 16 * K_LINE, v, V_ROW, key, stop);
    }
    asm volatile("cp.async.commit_group;" : : : "memory");
  };
  float o[E / 8][4] = {}, most[2] = {NONE, NONE}, sums[2] = {};
  int stage = 0, key = start + 16 * warp;
#pragma unroll
  for (int i = 0; i < STAGES - 1; i++) load(i, key + i * ${blockKeys});
  for (; key < stop; key += ${blockKeys}) {
    load((stage + STAGES - 1) % STAGES, key + (STAGES - 1) * ${blockKeys});
    asm volatile("cp.async.wait_group %0;" : : "n"(STAGES - 1) : "memory");
    __syncwarp();
    const u32 keys = own + stage * TILE_BYTES, values = keys + 16 * K_LINE;
    float s[2][4] = {};
#pragma unroll
    for (int i = 0; i < D / 16; i++) {
      u32 b[4];
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
        : "r"(keys + (lane % 8 + lane / 16 * 8) * K_LINE + i * 32 + lane / 8 % 2 * 16) : "memory");
      multiply(s[0], a[i], b[0], b[1]);
      multiply(s[1], a[i], b[2], b[3]);
    }
    float shifts[2];
#pragma unroll
    for (int row = 0; row < 2; row++) {
      float peak = most[row];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        float &score = s[i / 2][2 * row + i % 2];
        const int own = key + i / 2 * 8 + lane % 4 * 2 + i % 2;
        score = own >= seen[row].first && own < seen[row].stop ? score * SCALE : NONE;
        peak = fmaxf(peak, score);
      }
      peak = fmaxf(peak, __shfl_xor_sync(0xffffffffu, peak, 1));
      peak = fmaxf(peak, __shfl_xor_sync(0xffffffffu, peak, 2));
      shifts[row] = shift_of(peak);
      const float factor = exp2f(most[row] - shifts[row]);
      most[row] = peak;
      sums[row] *= factor;
#pragma unroll
      for (int i = 0; i < E / 8; i++) { o[i][2 * row] *= factor; o[i][2 * row + 1] *= factor; }
    }
    u32 p[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const float low = exp2f(s[i / 2][i % 2 * 2] - shifts[i % 2]), high = exp2f(s[i / 2][i % 2 * 2 + 1] - shifts[i % 2]);
      sums[i % 2] += low + high;
      p[i] = packed(low, high);
    }
#pragma unroll
    for (int i = 0; i < E / 16; i++) {
      u32 b[4];
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
        : "r"(values + lane % 16 * V_LINE + i * 32 + lane / 16 * 16) : "memory");
      multiply(o[2 * i], p, b[0], b[1]);
      multiply(o[2 * i + 1], p, b[2], b[3]);
    }
    __syncwarp();
    stage = (stage + 1) % STAGES;
  }

  // The rows of all warps.
  asm volatile("cp.async.wait_all;" : : : "memory");
  __syncthreads();
  float *const all = (float *)memory;
#pragma unroll
  for (int row = 0; row < 2; row++) {
    sums[row] += __shfl_xor_sync(0xffffffffu, sums[row], 1);
    sums[row] += __shfl_xor_sync(0xffffffffu, sums[row], 2);
    float *const to = all + (warp * 16 + lane / 4 + 8 * row) * (E + 2);
#pragma unroll
    for (int i = 0; i < E / 8; i++) {
      to[i * 8 + lane % 4 * 2] = o[i][2 * row];
      to[i * 8 + lane % 4 * 2 + 1] = o[i][2 * row + 1];
    }
    if (lane % 4 == 0) { to[E] = most[row]; to[E + 1] = sums[row]; }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 16 * E; i += ${threads}) {
    const int in = i / E, row = first + in, column = i % E;
    if (row >= ROWS) break;
    float peak = NONE, sum = 0, x = 0;
    for (int w = 0; w < ${warps}; w++) peak = fmaxf(peak, all[(w * 16 + in) * (E + 2) + E]);
    for (int w = 0; w < ${warps}; w++) {
      const float *const from = all + (w * 16 + in) * (E + 2);
      const float factor = exp2f(from[E] - shift_of(peak));
      sum += factor * from[E + 1];
      x += factor * from[column];
    }
#if RUNS == 1
    store(output, logsumexp, batch, HEAD_OF(key_head, row), row % QUERIES, column, x, sum, peak);
#else
    float *const to = parts + ((blockIdx.x * TILES + blockIdx.z) * 16ll + in) * RUNS * (E + 2) + blockIdx.y * (E + 2);
    to[column] = x;
    if (column == 0) { to[E] = peak; to[E + 1] = sum; }
#endif
  }
}`;

const sumBody = `extern "C" __global__ void __launch_bounds__((E + 31) / 32 * 32)
${kernelName}(u16 *output, float *logsumexp, const float *parts) {
  const int row = blockIdx.x % (TILES * 16), place = blockIdx.x / (TILES * 16), column = threadIdx.x;
  if (row >= ROWS || column >= E) return;
  const float *const from = parts + blockIdx.x * (long long)(RUNS * (E + 2));
  float peak = NONE, sum = 0, x = 0;
#pragma unroll 8
  for (int i = 0; i < RUNS; i++) peak = fmaxf(peak, from[i * (E + 2) + E]);
#pragma unroll 8
  for (int i = 0; i < RUNS; i++) {
    const float factor = exp2f(from[i * (E + 2) + E] - shift_of(peak));
    sum += factor * from[i * (E + 2) + E + 1];
    x += factor * from[i * (E + 2) + column];
  }
  store(output, logsumexp, place / KEY_HEADS, HEAD_OF(place % KEY_HEADS, row), row % QUERIES, column, x, sum, peak);
}`;
