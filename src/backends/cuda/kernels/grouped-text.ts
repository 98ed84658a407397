/** The CUDA C++ of a grouped matmul that does not depend on its operands' layouts (grouped-kernel.ts). */
import { kernelName } from "./kernel-source.ts";

/** One warpgroup copies, two multiply. */
export const groupedThreads = 384;

/** A warpgroup multiplies 64 rows by 16 terms. Its asm names all sums. */
export function multiplyText(columns: number, aAcross: boolean, bAcross: boolean): string {
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

export const groupedHead = `typedef unsigned short u16;
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

export const groupedBody = `DEVICE u32 shared_place(const void *p) { return (u32)__cvta_generic_to_shared(p); }
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

extern "C" __global__ void __launch_bounds__(${groupedThreads}, 1)
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
