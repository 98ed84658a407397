// grid 8 x 1 x 1, block 512 x 1 x 1
static __device__ __forceinline__ float braid_decode_bfloat16(unsigned short x) {
  return __uint_as_float((unsigned)x << 16);
}
static __device__ __forceinline__ unsigned short braid_encode_bfloat16(float x) {
  unsigned short y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
static __device__ __forceinline__ float braid_round_bfloat16(float x) {
  return braid_decode_bfloat16(braid_encode_bfloat16(x));
}
static __device__ __forceinline__ void braid_raise(unsigned *word) {
  asm volatile("st.release.sys.global.u32 [%0], 1;" : : "l"(word) : "memory");
}
static __device__ __forceinline__ unsigned braid_look(const unsigned *word) {
  unsigned x;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(x) : "l"(word) : "memory");
  return x;
}
static __device__ __forceinline__ void braid_see(const unsigned *word, unsigned *progress, unsigned says) {
  long long start = clock64();
  bool said = false;
  while (braid_look(word) != 1) {
    if (clock64() - start < 2000000) continue;
    *(volatile unsigned *)progress = says;
    said = true;
    start = clock64();
  }
  if (said) *(volatile unsigned *)progress = says + 0x80000000u;
}
static __device__ __forceinline__ void braid_await(unsigned *word, unsigned *progress, unsigned says) {
  braid_see(word, progress, says);
  *(volatile unsigned *)word = 0;
}
extern "C" __global__ void __launch_bounds__(512) braid_kernel(const unsigned short *input0, const unsigned short *input1, const unsigned short *input2, const unsigned short *input3, unsigned short *output0, unsigned *gate, unsigned *progress, unsigned *beforeRaise0, unsigned *beforeRaise1, unsigned *beforeRaise2, unsigned *beforeAwait0, unsigned long long beforeSays0, unsigned *beforeAwait1, unsigned long long beforeSays1, unsigned *beforeAwait2, unsigned long long beforeSays2, unsigned *afterRaise0, unsigned *afterRaise1, unsigned *afterRaise2, unsigned *afterAwait0, unsigned long long afterSays0, unsigned *afterAwait1, unsigned long long afterSays1, unsigned *afterAwait2, unsigned long long afterSays2) {
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) braid_raise(beforeRaise0);
    if (threadIdx.x == 32) braid_raise(beforeRaise1);
    if (threadIdx.x == 64) braid_raise(beforeRaise2);
    if (threadIdx.x == 96) braid_see(beforeAwait0, progress, (unsigned)beforeSays0);
    if (threadIdx.x == 128) braid_see(beforeAwait1, progress, (unsigned)beforeSays1);
    if (threadIdx.x == 160) braid_see(beforeAwait2, progress, (unsigned)beforeSays2);
  } else {
    if (threadIdx.x == 96) while (braid_look(beforeAwait0) != 1) {}
    if (threadIdx.x == 128) while (braid_look(beforeAwait1) != 1) {}
    if (threadIdx.x == 160) while (braid_look(beforeAwait2) != 1) {}
  }
  __syncthreads();
  for (unsigned first = blockIdx.x * 512u + threadIdx.x; first < 524288u; first += 16384u) {
    alignas(16) unsigned short n0r0[4][8];
    alignas(16) unsigned short n0r1[4][8];
    alignas(16) unsigned short n0r2[4][8];
    alignas(16) unsigned short n0r3[4][8];
#pragma unroll
    for (int u = 0; u < 4; u++) {
      const unsigned t = first + u * 4096u;
      if (t >= 524288u) break;
      const unsigned n0i0 = (t) * 8u;
      const unsigned n0l0 = n0i0;
      *(uint4 *)(n0r0[u]) = *(const uint4 *)(input0 + n0l0);
      const unsigned n0l1 = n0i0;
      *(uint4 *)(n0r1[u]) = *(const uint4 *)(input1 + n0l1);
      const unsigned n0l2 = n0i0;
      *(uint4 *)(n0r2[u]) = *(const uint4 *)(input2 + n0l2);
      const unsigned n0l3 = n0i0;
      *(uint4 *)(n0r3[u]) = *(const uint4 *)(input3 + n0l3);
    }
#pragma unroll
    for (int u = 0; u < 4; u++) {
      const unsigned t = first + u * 4096u;
      if (t >= 524288u) break;
      const unsigned n0i0 = (t) * 8u;
      alignas(16) unsigned short n0s[8];
#pragma unroll
      for (int v = 0; v < 8; v++) {
        const float n0v0 = braid_decode_bfloat16(n0r0[u][v]);
        const float n0v1 = braid_decode_bfloat16(n0r1[u][v]);
        const float n0v2 = braid_decode_bfloat16(n0r2[u][v]);
        const float n0v3 = braid_decode_bfloat16(n0r3[u][v]);
        const float n0v4 = (n0v0 + n0v1);
        const float n0v5 = (n0v4 + n0v2);
        const float n0v6 = (n0v5 + n0v3);
        const float n0v7 = braid_round_bfloat16(n0v6);
        const auto n0result = n0v7;
        n0s[v] = braid_encode_bfloat16(n0v6);
      }
      *(uint4 *)(output0 + (n0i0)) = *(const uint4 *)(n0s);
    }
  }
  __shared__ unsigned isLast;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence_system();
    isLast = atomicAdd(gate, 1u) == 7u;
    __threadfence();
  }
  __syncthreads();
  if (isLast) {
    if (threadIdx.x == 0) {
      *gate = 0;
      *(volatile unsigned *)beforeAwait0 = 0;
      *(volatile unsigned *)beforeAwait1 = 0;
      *(volatile unsigned *)beforeAwait2 = 0;
    }
    __syncthreads();
    if (threadIdx.x == 0) braid_raise(afterRaise0);
    if (threadIdx.x == 32) braid_raise(afterRaise1);
    if (threadIdx.x == 64) braid_raise(afterRaise2);
    if (threadIdx.x == 96) braid_await(afterAwait0, progress, (unsigned)afterSays0);
    if (threadIdx.x == 128) braid_await(afterAwait1, progress, (unsigned)afterSays1);
    if (threadIdx.x == 160) braid_await(afterAwait2, progress, (unsigned)afterSays2);
  }
}
