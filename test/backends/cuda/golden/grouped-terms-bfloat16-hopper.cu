// 132 x 1 x 1 blocks, 214352 bytes of shared memory
#define COLUMNS 256
#define STAGES 4
#define M 4096
#define N 7168
#define K 8192
#define GROUPS 8
#define PER_BATCH 8
#define COUNT 8
#define SHARING 1
#define OF_ROWS 0
#define A_ACROSS 1
#define B_ACROSS 1
#define C_STEP 7168
#define GROUP_STEP 29360128
#define END_STEP 1
#define TYPE "bf16"
typedef long long End;
typedef unsigned short u16;
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
/** 64 rows of a batch; none if `row` is `stop`. */
struct Half { int row, stop; u32 batch; };
struct Tile { int index, column, start, stop; u32 group; Half halves[2]; };
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
DEVICE u32 index_of(u32 batch, int axis) { return 0; }
DEVICE long long ends_offset(u32 batch) { return 0; }
DEVICE long long c_offset(u32 batch) { return 0; }
DEVICE void make_a(u32 map, const u16 *address) {
  asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;"
    : : "r"(map), "l"(address) : "memory");
  asm volatile("tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], 1;" : : "r"(map) : "memory");
  asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, %1;"
    : : "r"(map), "r"(64u) : "memory");
  asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, %1;"
    : : "r"(map), "r"(64u) : "memory");
  asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;"
    : : "r"(map), "r"(4096u) : "memory");
  asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;"
    : : "r"(map), "r"(8192u) : "memory");
  asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;"
    : : "r"(map), "l"(8192ll) : "memory");
  asm volatile("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 0, %1;"
    : : "r"(map), "r"(1u) : "memory");
  asm volatile("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 1, %1;"
    : : "r"(map), "r"(1u) : "memory");
  asm volatile("tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 10;" : : "r"(map) : "memory");
  asm volatile("tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], 0;" : : "r"(map) : "memory");
  asm volatile("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 3;" : : "r"(map) : "memory");
  asm volatile("tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 0;" : : "r"(map) : "memory");
}
DEVICE void make_b(u32 map, const u16 *address) {
  asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;"
    : : "r"(map), "l"(address) : "memory");
  asm volatile("tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], 1;" : : "r"(map) : "memory");
  asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, %1;"
    : : "r"(map), "r"(64u) : "memory");
  asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, %1;"
    : : "r"(map), "r"(64u) : "memory");
  asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;"
    : : "r"(map), "r"(7168u) : "memory");
  asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;"
    : : "r"(map), "r"(8192u) : "memory");
  asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;"
    : : "r"(map), "l"(14336ll) : "memory");
  asm volatile("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 0, %1;"
    : : "r"(map), "r"(1u) : "memory");
  asm volatile("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 1, %1;"
    : : "r"(map), "r"(1u) : "memory");
  asm volatile("tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 10;" : : "r"(map) : "memory");
  asm volatile("tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], 0;" : : "r"(map) : "memory");
  asm volatile("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 3;" : : "r"(map) : "memory");
  asm volatile("tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 0;" : : "r"(map) : "memory");
}
DEVICE void load_a(u32 to, const void *map, u32 barrier, const Tile &tile, const Half &half, int depth, int first = 0) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
    : : "r"(to), "l"(map), "r"(barrier), "r"((int)(half.row)), "r"((int)(tile.start + depth)) : "memory");
}
DEVICE void load_b(u32 to, const void *map, u32 barrier, const Tile &tile, const Half &half, int depth, int first = 0) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
    : : "r"(to), "l"(map), "r"(barrier), "r"((int)(tile.column) + first), "r"((int)(tile.start + depth)) : "memory");
}
DEVICE void multiply(float (&d)[128], u64 a, u64 b, int adds) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
    "wgmma.mma_async.sync.aligned.m64n256k16.f32." TYPE "." TYPE " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 1, 1;\n}\n"
    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]), "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127]) : "l"(a), "l"(b), "r"(adds));
}
DEVICE u32 shared_place(const void *p) { return (u32)__cvta_generic_to_shared(p); }
DEVICE void wait_for(u32 barrier, u32 parity) {
  asm volatile("{\n.reg .pred p;\nW:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra D;\nbra W;\nD:\n}\n"
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
/** The tile of this index, whose matrix is at `place` or after it. */
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

/** Tells a warp the sum before each of `count` numbers, and returns that of all. */
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

extern "C" __global__ void __launch_bounds__(384, 1)
braid_kernel(const u16 *a, const u16 *b, const End *ends, u16 *c, unsigned char *scratch) {
#ifndef __CUDA_ARCH_FEAT_SM90_ALL
  __assertfail("this plan is for GPUs of compute capability 9.0", "groupedMatmul", 0, "braid_kernel", 1);
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
}
