// C[M, N] = A[M, K] B[K, N] of bfloat16, sums in float, for sm_90a. measure.py compiles it by NVRTC, after the text of
// `wgmma` for BN columns, with
//   BN, STAGES      the columns of a tile (its rows are 128), and the tiles of operands in flight
//   CLUSTER         CTAs, one above the other, that share their columns of B by multicast
//   GROUP           rows of clusters in a band
//   A_MN, B_MN      whether M of A, or N of B, is contiguous instead of K
//   GATED           waits for the flags of the rows of A that a tile reads
// A persistent CTA of three warpgroups: one thread of the first copies operands by TMA into a ring of stages, the other
// two multiply 64 rows each and store their results by TMA. Rows of C from `own_from` on go to `own_c`.
typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short u16;
struct alignas(64) TensorMap { u64 words[16]; };
#define BM 128
#define BK 64
#define A_BYTES (BM * BK * 2)
#define B_BYTES (BN * BK * 2)
#define STAGE_BYTES (A_BYTES + B_BYTES)
#define C_BYTES (64 * 64 * 2)
#define DEVICE static __device__ __forceinline__

DEVICE u32 shared(const void* p) { return (u32)__cvta_generic_to_shared(p); }
DEVICE void init_barrier(u32 b, u32 n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(b), "r"(n)); }
DEVICE void expect(u32 b, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(bytes) : "memory");
}
DEVICE void wait_for(u32 b, u32 parity) {
  asm volatile("{\n.reg .pred p;\nW:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra D;\nbra W;\nD:\n}\n"
               ::"r"(b), "r"(parity) : "memory");
}
// Scopes wider than a CTA's, which consumers that only read do not need, make each step wait: 73 % of the rate.
DEVICE void release(u32 b, u32 cta) {
#if CLUSTER > 1
  asm volatile("{\n.reg .b32 r;\nmapa.shared::cluster.u32 r, %0, %1;\nmbarrier.arrive.shared::cluster.b64 _, [r];\n}\n"
               ::"r"(b), "r"(cta) : "memory");
#else
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(b) : "memory");
#endif
}
DEVICE void load(u32 to, const TensorMap* map, u32 barrier, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
               ::"r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y) : "memory");
}
// To the same place of each CTA of the cluster.
DEVICE void load_all(u32 to, const TensorMap* map, u32 barrier, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
               " [%0], [%1, {%3, %4}], [%2], %5;"
               ::"r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y), "h"((u16)((1 << CLUSTER) - 1)) : "memory");
}
DEVICE void store(const TensorMap* map, u32 from, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];"
               ::"l"(map), "r"(from), "r"(x), "r"(y) : "memory");
}
// A descriptor: rows of 128 bytes, swizzled in atoms of 8 rows. A row has 64 elements of K, or with `blocks` 64 elements
// of M or N, and 64 rows, one for each k, are a block.
DEVICE u64 operand(u32 at, int blocks) {
  return (u64)((at & 0x3ffff) >> 4) | ((blocks ? 512ull : 1ull) << 16) | (64ull << 32) | (1ull << 62);
}
DEVICE u32 pack(float low, float high) {
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

struct Tile { int m, n; };
// Tiles in bands of GROUP rows of clusters, so that the tiles in flight share operands in L2.
DEVICE Tile tile_of(int i, int rows, int columns) {
  int band = i / (GROUP * columns), in = i - band * GROUP * columns;
  int height = min(GROUP, rows - band * GROUP);
  return {band * GROUP + in % height, in / height};
}

extern "C" __global__ void __launch_bounds__(384, 1)
#if CLUSTER > 1
__cluster_dims__(CLUSTER, 1, 1)
#endif
gemm(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const __grid_constant__ TensorMap c,
     const __grid_constant__ TensorMap own_c, int own_from, int m, int n, int k, const u32* __restrict__ flags, int flag_rows,
     u32 epoch) {
  extern __shared__ __align__(1024) unsigned char memory[];
  const u32 base = (shared(memory) + 1023) & ~1023u;
  const u32 staging = base + STAGES * STAGE_BYTES;
  const u32 full = staging + 4 * C_BYTES, empty = full + 8 * STAGES;
  const int tid = threadIdx.x, group = tid / 128;
  u32 rank = 0;
#if CLUSTER > 1
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  if (tid == 0) {
    for (int i = 0; i < STAGES; i++) { init_barrier(full + 8 * i, 1); init_barrier(empty + 8 * i, 2 * CLUSTER); }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
#if CLUSTER > 1
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
#endif
  const int rows = (m + BM * CLUSTER - 1) / (BM * CLUSTER), columns = (n + BN - 1) / BN;
  const int tiles = rows * columns, steps = (k + BK - 1) / BK;
  const int first = blockIdx.x / CLUSTER, stride = gridDim.x / CLUSTER;
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (tid == 0) {
      u32 stage = 0, phase = 0;
      for (int t = first; t < tiles; t += stride) {
        const Tile tile = tile_of(t, rows, columns);
        const int y = (tile.m * CLUSTER + rank) * BM, x = tile.n * BN;
#ifdef GATED
        { // The rows of A that this tile reads have arrived.
          const int last = min(y + BM, m) - 1;
          for (int f = y / flag_rows; f <= last / flag_rows; f++) {
            u32 seen;
            do asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flags + f) : "memory");
            while ((int)(seen - epoch) < 0);
          }
          asm volatile("fence.proxy.async;" ::: "memory");
        }
#endif
        for (int step = 0; step < steps; step++) {
          wait_for(empty + 8 * stage, phase ^ 1);
          const u32 barrier = full + 8 * stage, to = base + stage * STAGE_BYTES;
          expect(barrier, STAGE_BYTES);
#if A_MN
          for (int j = 0; j < BM / 64; j++) load(to + j * 8192, &a, barrier, y + 64 * j, step * BK);
#else
          load(to, &a, barrier, step * BK, y);
#endif
#if B_MN && CLUSTER > 1
          for (int j = rank * (BN / 64 / CLUSTER); j < (rank + 1) * (BN / 64 / CLUSTER); j++)
            load_all(to + A_BYTES + j * 8192, &b, barrier, x + 64 * j, step * BK);
#elif B_MN
          for (int j = 0; j < BN / 64; j++) load(to + A_BYTES + j * 8192, &b, barrier, x + 64 * j, step * BK);
#elif CLUSTER > 1
          load_all(to + A_BYTES + rank * (B_BYTES / CLUSTER), &b, barrier, step * BK, x + rank * (BN / CLUSTER));
#else
          load(to + A_BYTES, &b, barrier, step * BK, x);
#endif
          if (++stage == STAGES) { stage = 0; phase ^= 1; }
        }
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int own = group - 1, lane = tid & 31, warp = (tid / 32) & 3;
    const bool leader = tid % 128 == 0;
    u32 stage = 0, phase = 0, pieces = 0;
    float d[BN / 2];
    const u32 out = staging + own * 2 * C_BYTES;
    for (int t = first; t < tiles; t += stride) {
      const Tile tile = tile_of(t, rows, columns);
      const int y = (tile.m * CLUSTER + rank) * BM + own * 64, x = tile.n * BN;
      u32 last = 0;
      for (int step = 0; step < steps; step++) {
        wait_for(full + 8 * stage, phase);
        const u32 at = base + stage * STAGE_BYTES;
        const u64 da = operand(at + own * 64 * 128, A_MN), db = operand(at + A_BYTES, B_MN);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int i = 0; i < 4; i++) wgmma(d, da + (A_MN ? 128 : 2) * i, db + (B_MN ? 128 : 2) * i, step > 0 || i > 0);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        if (step > 0) {
          asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
          if (tid % 128 < CLUSTER) release(empty + 8 * last, tid % 128);
        }
        last = stage;
        if (++stage == STAGES) { stage = 0; phase ^= 1; }
      }
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
      if (tid % 128 < CLUSTER) release(empty + 8 * last, tid % 128);
#pragma unroll
      for (int piece = 0; piece < BN / 64; piece++, pieces++) {
        const u32 to = out + (pieces & 1) * C_BYTES;
        if (leader) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
        asm volatile("bar.sync %0, 128;" ::"r"(group) : "memory");
        const int row = 16 * warp + ((lane >> 3) & 1) * 8 + (lane & 7);
#pragma unroll
        for (int j = 0; j < 4; j++) {
          const float* e = d + piece * 32 + j * 8;
          const u32 address = to + row * 128 + (((2 * j + (lane >> 4)) ^ (lane & 7)) << 4);
          asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                       ::"r"(address), "r"(pack(e[0], e[1])), "r"(pack(e[2], e[3])), "r"(pack(e[4], e[5])),
                       "r"(pack(e[6], e[7])) : "memory");
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("bar.sync %0, 128;" ::"r"(group) : "memory");
        if (leader) {
          if (y >= own_from) store(&own_c, to, x + piece * 64, y - own_from);
          else store(&c, to, x + piece * 64, y);
          asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        }
      }
    }
    if (leader) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
#if CLUSTER > 1
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
#endif
}
