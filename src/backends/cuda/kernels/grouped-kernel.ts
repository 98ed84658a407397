/**
 * A grouped matmul of bfloat16 or half on Hopper's tensor cores, with sums in float.
 *
 * As many blocks as multiprocessors take tiles of 128 rows in turn, all rows of a group before its next columns, so
 * that tiles share the group's matrix in L2. In a block, one thread copies operands by TMA into a ring of stages, and
 * two warpgroups multiply 64 rows each (wgmma). The descriptors that TMA needs are made by the block, in scratch.
 * The two halves of a tile may be of two batches that share a matrix, so that tiles are full where groups are not.
 *
 * A launch before it checks the ends of the groups: with a call anywhere in a kernel, ptxas lets every wgmma wait for the
 * one before it.
 *
 * A tile may read more rows than its group has, which it does not store. Terms after the group's last one are set to
 * zero in shared memory, in both operands, because what follows them may be NaN.
 *
 * Lines of operands in shared memory have 128 bytes, swizzled by TMA: 64 terms of a row of a or of a column of b, or,
 * if the operand is contiguous along those ("across"), 64 of them for one term.
 */
import type { Contraction, Groups } from "../../../kernels/gemm/contraction.ts";
import type { NestMemory } from "../../../kernels/nests/nest.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import type { DeviceTarget } from "../ops/planning.ts";
import { kernelName, type KernelSource } from "./kernel-source.ts";
import { withPrelude } from "./text/prelude.ts";

/** Of a tile. */
const tileRows = 128;
/** Of a stage, and elements of a line. */
const tileTerms = 64;
const threads = 384;
const checkThreads = 128;
/** Groups of all batches, whose places lie beside the stages. */
const mostGroups = 1024;
/** Descriptors of a and b. */
const maps = 2;
const mapBytes = 128;
const leastExtent = 64;
const mostDimensions = 5;

/** What the kernel's descriptors take of the scratch. */
export function groupedDescriptorBytes({ multiprocessors }: DeviceTarget): number {
  return maps * mapBytes * multiprocessors;
}

/** An operand as TMA reads it. Extents and strides are in elements, the contiguous dimension first, of stride 1. */
interface TensorMap {
  readonly extents: readonly number[];
  readonly strides: readonly number[];
  /** Lines of a copy. */
  readonly lines: number;
  /** Where a copy begins, in C. */
  readonly coordinates: readonly string[];
  /** Whether lines are terms. */
  readonly across: boolean;
}

/**
 * The kernel's parameters are a, b, the ends, c and scratch for its descriptors. Null for what it does not take:
 * another GPU, other dtypes, strides that are 0 or no multiples of 16 bytes, matrices that one tile would hardly fill.
 */
export function groupedKernel(
  contraction: Contraction,
  operands: readonly NestMemory[],
  target: DeviceTarget,
): KernelSource | null {
  const { dtype, m, n, k, c, batch, groups } = contraction;
  if (target.capability !== 90 || groups === undefined || (dtype !== "bfloat16" && dtype !== "half")) return null;
  const ofRows = groups.of === "m";
  const columns = n > 128 ? 256 : 128;
  const stages = columns === 256 ? 4 : 6;
  const [left, right] = [leftMap(contraction, ofRows), rightMap(contraction, groups, columns)];
  const batches = batch.reduce((product, { extent }) => product * extent, 1);
  // The rows after the last group are one more group, of zeros.
  const perBatch = groups.count + (ofRows ? 1 : 0);
  const steps = [...left.strides, ...right.strides, c.row, groups.stride, n, ...batch.map((axis) => axis.c)];
  const dimensions = Math.max(left.extents.length, right.extents.length);
  const repeats = [...left.strides, ...right.strides].includes(0);
  if (repeats || left.across === ofRows || !(ofRows || right.across) || c.column !== 1) return null;
  if (!isContiguous(contraction, left, right) || steps.some((step) => step % 8 !== 0)) return null;
  if (Math.min(m, n, k) < leastExtent) return null;
  if (dimensions > mostDimensions || batches * perBatch > mostGroups) return null;
  const tiles = ofRows ? Math.ceil(m / tileRows) + perBatch : groups.count * Math.ceil(m / tileRows);
  const sharing = ofRows ? batchesOfMatrix(batch) : 1;
  const numbers = {
    COLUMNS: columns,
    STAGES: stages,
    M: m,
    N: n,
    K: k,
    GROUPS: groups.count,
    PER_BATCH: perBatch,
    COUNT: batches * perBatch,
    SHARING: sharing,
    OF_ROWS: ofRows ? 1 : 0,
    A_ACROSS: left.across ? 1 : 0,
    B_ACROSS: right.across ? 1 : 0,
    C_STEP: c.row,
    GROUP_STEP: groups.stride,
    END_STEP: groups.ends.stride,
  };
  const text = [
    ...Object.entries(numbers).map(([name, value]) => `#define ${name} ${value}`),
    `#define TYPE "${dtype === "half" ? "f16" : "bf16"}"`,
    `typedef ${dtypes[groups.ends.dtype].cuda.c} End;`,
    head,
    batchText(contraction, groups),
    mapText("a", left, dtype),
    mapText("b", right, dtype),
    loadText("a", left),
    loadText("b", right),
    multiplyText(columns, left.across, right.across),
    body,
  ];
  return {
    text: withPrelude(`${text.join("\n")}\n`),
    grid: [Math.min(batches * tiles * Math.ceil(n / columns), target.multiprocessors), 1, 1],
    block: [threads, 1, 1],
    parameters: operands,
    // Alignment, stages with their barriers, descriptors, and the places of groups.
    sharedBytes: 1024 + stages * (2 * (tileRows + columns) * tileTerms + 16) + maps * mapBytes + 16 * (mostGroups + 1),
  };
}

function isContiguous({ a, b }: Contraction, left: TensorMap, right: TensorMap): boolean {
  return (left.across ? a.row : a.column) === 1 && (right.across ? b.column : b.row) === 1;
}

function leftMap({ m, k, a, batch }: Contraction, ofRows: boolean): TensorMap {
  const across = a.column !== 1;
  return withBatch(
    {
      extents: across ? [m, k] : [k, m],
      strides: [across ? a.column : a.row],
      lines: tileTerms,
      coordinates: across ? ["half.row", ofRows ? "depth" : "tile.start + depth"] : ["depth", "half.row"],
      across,
    },
    batch.map((axis) => [axis.extent, axis.a]),
  );
}

function rightMap({ n, k, b, batch }: Contraction, { of, count, stride }: Groups, columns: number): TensorMap {
  const across = b.row !== 1;
  const depth = of === "m" ? "depth" : "tile.start + depth";
  const hasMatrices = of === "m" && count > 1;
  return withBatch(
    {
      extents: [...(across ? [n, k] : [k, n]), ...(hasMatrices ? [count] : [])],
      strides: [across ? b.row : b.column, ...(hasMatrices ? [stride] : [])],
      lines: across ? tileTerms : columns,
      coordinates: [
        ...(across ? ["tile.column", depth] : [depth, "tile.column"]),
        ...(hasMatrices ? ["tile.group"] : []),
      ],
      across,
    },
    batch.map((axis) => [axis.extent, axis.b]),
  );
}

/** How many batches in a row have the same matrices. */
function batchesOfMatrix(batch: Contraction["batch"]): number {
  const last = batch.findLastIndex(({ b }) => b !== 0);
  return batch.slice(last + 1).reduce((product, { extent }) => product * extent, 1);
}

/** An operand that is the same in all of an axis has no dimension for it. */
function withBatch(map: TensorMap, axes: readonly (readonly [extent: number, stride: number])[]): TensorMap {
  const own = axes.flatMap(([extent, stride], i) => (stride === 0 ? [] : [{ extent, stride, i }]));
  return {
    ...map,
    extents: [...map.extents, ...own.map(({ extent }) => extent)],
    strides: [...map.strides, ...own.map(({ stride }) => stride)],
    coordinates: [...map.coordinates, ...own.map(({ i }) => `index_of(half.batch, ${i})`)],
  };
}

/** The index of a batch along each of its axes, and its offsets in the ends and in c, in elements. */
function batchText({ batch }: Contraction, { ends }: Groups): string {
  const inner = batch.map((_, i) => batch.slice(i + 1).reduce((product, { extent }) => product * extent, 1));
  const indices = batch.map(({ extent }, i) => `axis == ${i} ? batch / ${at(inner, i)}u % ${extent}u : `);
  const offset = (name: string, strides: readonly number[]): string => {
    const terms = strides.map((stride, i) => ` + index_of(batch, ${i}) * ${stride}ll`);
    return `DEVICE long long ${name}_offset(u32 batch) { return 0${terms.join("")}; }`;
  };
  return `DEVICE u32 index_of(u32 batch, int axis) { return ${indices.join("")}0; }
${offset("ends", ends.batch)}
${offset(
  "c",
  batch.map(({ c }) => c),
)}`;
}

/** Makes a descriptor in shared memory. */
function mapText(name: string, { extents, strides, lines }: TensorMap, dtype: "bfloat16" | "half"): string {
  const replace = (field: string, type: string, ...values: readonly string[]): string =>
    `  asm volatile("tensormap.replace.tile.${field}.shared::cta.b1024.${type} [%0], ${values.slice(0, -1).join("")}%1;"
    : : "r"(map), ${values.at(-1) ?? ""} : "memory");`;
  const constant = (field: string, value: number): string =>
    `  asm volatile("tensormap.replace.tile.${field}.shared::cta.b1024.b32 [%0], ${value};" : : "r"(map) : "memory");`;
  const each = (field: string, type: string, values: readonly number[]): readonly string[] =>
    values.map((value, i) => replace(field, type, `${i}, `, type === "b64" ? `"l"(${value}ll)` : `"r"(${value}u)`));
  const box = extents.map((_, i) => (i === 0 ? tileTerms : i === 1 ? lines : 1));
  return `DEVICE void make_${name}(u32 map, const u16 *address) {
${[
  replace("global_address", "b64", '"l"(address)'),
  constant("rank", extents.length - 1),
  ...each("box_dim", "b32", box),
  ...each("global_dim", "b32", extents),
  ...each(
    "global_stride",
    "b64",
    strides.map((stride) => 2 * stride),
  ),
  ...each(
    "element_stride",
    "b32",
    extents.map(() => 1),
  ),
  constant("elemtype", dtype === "half" ? 6 : 10),
  constant("interleave_layout", 0),
  constant("swizzle_mode", 3),
  constant("fill_mode", 0),
].join("\n")}
}`;
}

/** Copies a part of an operand to a stage. */
function loadText(name: string, map: TensorMap): string {
  const { coordinates, across } = map;
  const places = coordinates.map((_, i) => `%${i + 3}`).join(", ");
  const moves = across && name === "b";
  const values = coordinates.map((each, i) => `"r"((int)(${each})${moves && i === 0 ? " + first" : ""})`).join(", ");
  const copy = `cp.async.bulk.tensor.${map.extents.length}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes`;
  return `DEVICE void load_${name}(u32 to, const void *map, u32 barrier, const Tile &tile, const Half &half, int depth, int first = 0) {
  asm volatile("${copy} [%0], [%1, {${places}}], [%2];"
    : : "r"(to), "l"(map), "r"(barrier), ${values} : "memory");
}`;
}

/** A warpgroup multiplies 64 rows by 16 terms. Its asm names all sums. */
function multiplyText(columns: number, aAcross: boolean, bAcross: boolean): string {
  const sums = columns / 2;
  const names = Array.from({ length: sums }, (_, i) => `%${i}`).join(", ");
  const bound = Array.from({ length: sums }, (_, i) => `"+f"(d[${i}])`).join(", ");
  const flags = `p, 1, 1, ${aAcross ? 1 : 0}, ${bAcross ? 1 : 0}`;
  return `DEVICE void multiply(float (&d)[${sums}], u64 a, u64 b, int adds) {
  asm volatile("{\\n.reg .pred p;\\nsetp.ne.b32 p, %${sums + 2}, 0;\\n"
    "wgmma.mma_async.sync.aligned.m64n${columns}k16.f32." TYPE "." TYPE " {${names}}, %${sums}, %${sums + 1}, ${flags};\\n}\\n"
    : ${bound} : "l"(a), "l"(b), "r"(adds));
}`;
}

/** Ends the run unless the ends of the groups of each batch do not fall and are at most the rows. Its parameter: ends. */
export function endsCheck(contraction: Contraction): KernelSource | null {
  const { m, k, batch, groups } = contraction;
  if (groups === undefined) return null;
  const count = batch.reduce((product, { extent }) => product * extent, groups.count);
  const text = `typedef unsigned u32;
typedef ${dtypes[groups.ends.dtype].cuda.c} End;
#define DEVICE static __device__ __forceinline__
${batchText(contraction, groups)}
extern "C" __global__ void __launch_bounds__(${checkThreads}) ${kernelName}(const End *ends) {
  const u32 i = blockIdx.x * ${checkThreads}u + threadIdx.x;
  if (i >= ${count}u) return;
  const u32 batch = i / ${groups.count}u, group = i % ${groups.count}u;
  const End *const own = ends + ends_offset(batch);
  const long long start = group == 0 ? 0 : (long long)own[(group - 1) * ${groups.ends.stride}ll];
  const long long end = (long long)own[group * ${groups.ends.stride}ll];
  if (end < start || end > ${groups.of === "m" ? m : k}) braid_bad_ends();
}
`;
  return {
    text: withPrelude(text),
    grid: [Math.ceil(count / checkThreads), 1, 1],
    block: [checkThreads, 1, 1],
    parameters: [],
  };
}

const head = `typedef unsigned short u16;
typedef unsigned u32;
typedef unsigned long long u64;
#define DEVICE static __device__ __forceinline__
#define DEPTH 64
#define A_BYTES (128 * DEPTH * 2)
#define STAGE_BYTES (A_BYTES + COLUMNS * DEPTH * 2)
#define ACROSS_N ((N + COLUMNS - 1) / COLUMNS)

#define MATRICES (COUNT / SHARING)

/** Of a batch: the rows or terms of a group, and the halves of tiles before it; of its matrix, the tiles of rows. */
struct Group { int start, stop, halves, tiles; };
/** 64 rows of a batch; none if \`row\` is \`stop\`. */
struct Half { int row, stop; u32 batch; };
struct Tile { int index, column, start, stop; u32 group; Half halves[2]; };
#ifdef __CUDA_ARCH_FEAT_SM90_ALL`;

const body = `DEVICE u32 shared_place(const void *p) { return (u32)__cvta_generic_to_shared(p); }
DEVICE void wait_for(u32 barrier, u32 parity) {
  asm volatile("{\\n.reg .pred p;\\nW:\\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\\n@p bra D;\\nbra W;\\nD:\\n}\\n"
    : : "r"(barrier), "r"(parity) : "memory");
}
DEVICE void release(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(barrier) : "memory");
}
DEVICE u32 packed(float low, float high) {
  u32 x;
  asm("cvt.rn." TYPE "x2.f32 %0, %1, %2;" : "=r"(x) : "f"(high), "f"(low));
  return x;
}
/** An operand in shared memory, as wgmma takes it. */
DEVICE u64 operand(u32 at, int across) {
  return (u64)((at & 0x3ffff) >> 4) | ((across ? 512ull : 1ull) << 16) | (64ull << 32) | (1ull << 62);
}
/** The tile of this index, whose matrix is at \`place\` or after it. */
DEVICE bool find(Tile &tile, u32 &place, const Group *groups) {
  while (place < MATRICES && tile.index >= groups[(place + 1) * SHARING].tiles * ACROSS_N) place++;
  if (place == MATRICES) return false;
  const Group *own = groups + place * SHARING;
  const int rows = own[SHARING].tiles - own->tiles, in = tile.index - own->tiles * ACROSS_N;
  const u32 batch = place / PER_BATCH * SHARING;
  tile.group = place % PER_BATCH;
  tile.column = in / rows * COLUMNS;
  tile.start = own->start;
  tile.stop = own->stop;
  int half = own->halves + in % rows * 2, i = 0;
#pragma unroll
  for (int j = 0; j < 2; j++, half++) {
    while (i < SHARING && half >= own[i + 1].halves) i++;
    const Group &group = own[min(i, SHARING - 1)];
    const int stop = OF_ROWS ? group.stop : M, row = (OF_ROWS ? group.start : 0) + 64 * (half - group.halves);
    tile.halves[j].row = i < SHARING ? row : stop;
    tile.halves[j].stop = stop;
    tile.halves[j].batch = batch + min(i, SHARING - 1);
  }
  return true;
}
DEVICE int terms_of(const Tile &tile) { return OF_ROWS ? (tile.group < GROUPS ? K : 0) : tile.stop - tile.start; }

/** Tells a warp the sum before each of \`count\` numbers, and returns that of all. */
template <class Number, class Tell> DEVICE int sums_before(u32 count, Number number, Tell tell) {
  int sum = 0;
  for (u32 from = 0; from < count; from += 32) {
    const u32 i = from + threadIdx.x;
    const int own = i < count ? number(i) : 0;
    int before = own;
    for (int by = 1; by < 32; by *= 2) {
      const int other = __shfl_up_sync(0xffffffffu, before, by);
      if (threadIdx.x >= by) before += other;
    }
    if (i < count) tell(i, sum + before - own);
    sum += __shfl_sync(0xffffffffu, before, 31);
  }
  return sum;
}

/** The groups of all batches, with the halves and tiles before each. */
DEVICE void read_groups(Group *groups, const End *ends) {
  for (u32 i = threadIdx.x; i < COUNT; i += blockDim.x) {
    const u32 matrix = i / SHARING, group = matrix % PER_BATCH, batch = matrix / PER_BATCH * SHARING + i % SHARING;
    const End *own = ends + ends_offset(batch);
    const long long limit = OF_ROWS ? M : K;
    const long long given = group == 0 ? 0 : (long long)own[(group - 1) * (long long)END_STEP];
    const long long start = given < 0 ? 0 : given > limit ? limit : given;
    const long long end = group == GROUPS ? limit : (long long)own[group * (long long)END_STEP];
    groups[i].start = (int)start;
    groups[i].stop = (int)(end < start ? start : end > limit ? limit : end);
  }
  __syncthreads();
  if (threadIdx.x >= 32) return;
  const int halves = sums_before(COUNT, [&](u32 i) {
    return ((OF_ROWS ? groups[i].stop - groups[i].start : (M + 127) / 128 * 128) + 63) / 64;
  }, [&](u32 i, int sum) { groups[i].halves = sum; });
  groups[COUNT].halves = halves;
  __syncwarp();
  const int tiles = sums_before(MATRICES, [&](u32 i) {
    return (groups[(i + 1) * SHARING].halves - groups[i * SHARING].halves + 1) / 2;
  }, [&](u32 i, int sum) { groups[i * SHARING].tiles = sum; });
  groups[COUNT].tiles = tiles;
}

/** Stores 64 rows of a tile. Four lanes have two columns each of four vectors of eight; then each has one vector. */
DEVICE void store(u16 *c, const Tile &tile, const Half &half, const float (&d)[COLUMNS / 2]) {
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const int row = half.row + warp * 16 + lane / 4, column = tile.column + lane % 4 * 8;
  u16 *to = c + c_offset(half.batch) + (OF_ROWS ? 0 : tile.group * (long long)GROUP_STEP) + row * (long long)C_STEP + column;
  const bool odd = lane & 1, upper = lane & 2;
#pragma unroll
  for (int i = 0; i < COLUMNS / 32; i++) {
#pragma unroll
    for (int part = 0; part < 2; part++) {
      u32 x[4];
#pragma unroll
      for (int j = 0; j < 4; j++) x[j] = packed(d[i * 16 + j * 4 + part * 2], d[i * 16 + j * 4 + part * 2 + 1]);
      const u32 p = __shfl_xor_sync(0xffffffffu, odd ? x[0] : x[1], 1), q = __shfl_xor_sync(0xffffffffu, odd ? x[2] : x[3], 1);
      if (odd) { x[0] = p; x[2] = q; } else { x[1] = p; x[3] = q; }
      const u32 r = __shfl_xor_sync(0xffffffffu, upper ? x[0] : x[2], 2), s = __shfl_xor_sync(0xffffffffu, upper ? x[1] : x[3], 2);
      if (upper) { x[0] = r; x[1] = s; } else { x[2] = r; x[3] = s; }
      if (row + part * 8 < half.stop && column + i * 32 < N)
        *(uint4 *)(to + part * 8 * (long long)C_STEP + i * 32) = make_uint4(x[0], x[1], x[2], x[3]);
    }
  }
}
#endif

extern "C" __global__ void __launch_bounds__(${threads}, 1)
${kernelName}(const u16 *a, const u16 *b, const End *ends, u16 *c, unsigned char *scratch) {
#ifndef __CUDA_ARCH_FEAT_SM90_ALL
  __assertfail("this plan is for GPUs of compute capability 9.0", "groupedMatmul", 0, "${kernelName}", 1);
#else
  extern __shared__ __align__(1024) unsigned char memory[];
  const u32 base = (shared_place(memory) + 1023) & ~1023u;
  const u32 maps = base + STAGES * STAGE_BYTES, full = maps + 256, empty = full + 8 * STAGES;
  Group *const groups = (Group *)(memory + (empty + 8 * STAGES - shared_place(memory)));
  const int tid = threadIdx.x, group = __shfl_sync(0xffffffffu, tid / 128, 0);
  unsigned char *const own = scratch + blockIdx.x * 256;
  if (tid < 32) {
    for (u32 i = tid; i < 64; i += 32) asm volatile("st.shared.u32 [%0], 0;" : : "r"(maps + 4 * i) : "memory");
    __syncwarp();
    if (tid == 0) {
      make_a(maps, a);
      make_b(maps + 128, b);
      for (int i = 0; i < 2 * STAGES; i++)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(full + 8 * i), "r"(i < STAGES ? 1 : 2) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
      asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
    }
    __syncwarp();
    for (int i = 0; i < 2; i++)
      asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;"
        : : "l"(own + 128 * i), "r"(maps + 128 * i) : "memory");
  }
  read_groups(groups, ends);
  __syncthreads();
  Tile tile;
  u32 place = 0, stage = 0, phase = 0;
  tile.index = blockIdx.x;
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (tid == 0) {
      for (int i = 0; i < 2; i++)
        asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" : : "l"(own + 128 * i) : "memory");
      for (; find(tile, place, groups); tile.index += gridDim.x) {
        const int terms = terms_of(tile);
        // Rows of zeros are nothing to copy.
        const int count = OF_ROWS && tile.halves[1].row >= tile.halves[1].stop ? 1 : 2;
        for (int depth = 0; depth < terms; depth += DEPTH) {
          wait_for(empty + 8 * stage, phase ^ 1);
          const u32 barrier = full + 8 * stage, to = base + stage * STAGE_BYTES;
          asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(barrier), "r"(STAGE_BYTES - (2 - count) * 8192) : "memory");
#pragma unroll
          for (int i = 0; i < 2; i++) if (i < count) load_a(to + i * 8192, own, barrier, tile, tile.halves[i], depth);
          for (int i = 0; i < (B_ACROSS ? COLUMNS / 64 : 1); i++)
            load_b(to + A_BYTES + i * 8192, own + 128, barrier, tile, tile.halves[0], depth, 64 * i);
          if (++stage == STAGES) { stage = 0; phase ^= 1; }
        }
      }
    }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  float d[COLUMNS / 2];
  for (; find(tile, place, groups); tile.index += gridDim.x) {
    const int terms = terms_of(tile);
    u32 last = 0;
    const Half half = group == 1 ? tile.halves[0] : tile.halves[1];
    if (OF_ROWS && half.row >= half.stop) {
      // The other warpgroup has all rows of the tile.
      for (int depth = 0; depth < terms; depth += DEPTH) {
        wait_for(full + 8 * stage, phase);
        if (tid % 128 == 0) release(empty + 8 * stage);
        if (++stage == STAGES) { stage = 0; phase ^= 1; }
      }
      continue;
    }
    for (int depth = 0; depth < terms; depth += DEPTH) {
      wait_for(full + 8 * stage, phase);
      // By way of a shuffle, the compiler knows that descriptors are the same in a warp.
      const u32 at = __shfl_sync(0xffffffffu, base + stage * STAGE_BYTES, 0);
      if (!OF_ROWS && depth + DEPTH > terms) {
        for (int block = 0; block < STAGE_BYTES / 8192; block++)
          for (int i = (terms - depth) * 8 + tid - 128; i < 512; i += 256)
            asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" : : "r"(at + block * 8192 + i * 16), "r"(0) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
        asm volatile("bar.sync 1, 256;" : : : "memory");
      }
      const u64 da = operand(at + (group - 1) * 8192, A_ACROSS), db = operand(at + A_BYTES, B_ACROSS);
      asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
#pragma unroll
      for (int i = 0; i < 4; i++) multiply(d, da + (A_ACROSS ? 128 : 2) * i, db + (B_ACROSS ? 128 : 2) * i, depth > 0 || i > 0);
      asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
      if (depth > 0) {
        asm volatile("wgmma.wait_group.sync.aligned 1;" : : : "memory");
        if (tid % 128 == 0) release(empty + 8 * last);
      }
      last = stage;
      if (++stage == STAGES) { stage = 0; phase ^= 1; }
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" : : : "memory");
    if (tid % 128 == 0 && terms > 0) release(empty + 8 * last);
    if (terms == 0) {
#pragma unroll
      for (int i = 0; i < COLUMNS / 2; i++) d[i] = 0.0f;
    }
    store(c, tile, half, d);
  }
#endif
}`;
