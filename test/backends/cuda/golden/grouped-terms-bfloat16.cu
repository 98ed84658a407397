// grid 224 x 128 x 8, block 256 x 1 x 1, parameters [{"kind":"input","position":0},{"kind":"input","position":1},{"kind":"input","position":2},{"kind":"output","position":0}]
extern "C" __device__ void __assertfail(const char *, const char *, unsigned, const char *, size_t);
static __device__ void braid_bad_ends() {
  __assertfail("the ends of groups do not fall and are at most the rows", "groupedMatmul", 0, "braid_kernel", 1);
}
static __device__ __forceinline__ float braid_decode_bfloat16(unsigned short x) {
  return __uint_as_float((unsigned)x << 16);
}
static __device__ __forceinline__ unsigned short braid_encode_bfloat16(float x) {
  unsigned short y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
extern "C" __global__ void __launch_bounds__(256) braid_kernel(const unsigned short *a, const unsigned short *b, const long long *ends, unsigned short *c) {
  __shared__ float left[32][33];
  __shared__ float right[32][33];
  unsigned long long offsetA = 0, offsetB = 0, offsetC = 0, offsetEnds = 0;
  unsigned rest = blockIdx.z;
  const unsigned group = rest % 8u;
  rest /= 8u;
  const unsigned column = threadIdx.x % 32u;
  const unsigned row = threadIdx.x / 32u * 4u;
  const unsigned firstRow = blockIdx.y * 32u;
  const long long limit = 8192;
  const long long given = group == 0 ? 0 : (long long)ends[offsetEnds + (group - 1) * 1ull];
  const long long start = given < 0 ? 0 : given > limit ? limit : given;
  const long long end = (long long)ends[offsetEnds + (group) * 1ull];
  if (end < start || end > limit) braid_bad_ends();
  const unsigned terms = end < start ? 0u : (unsigned)((end > limit ? limit : end) - start);
  offsetA += start * 4096ull;
  offsetB += start * 7168ull;
  offsetC += group * 29360128ull;
  const unsigned firstColumn = blockIdx.x * 32u;
  float sum[4];
#pragma unroll
  for (int i = 0; i < 4; i++) sum[i] = 0.0f;
  float sum1[4];
#pragma unroll
  for (int i = 0; i < 4; i++) sum1[i] = 0.0f;
  for (unsigned depth = 0; depth < terms; depth += 32u) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const unsigned line = row + i;
      const unsigned long long x = firstRow + line, y = firstColumn + column;
      const unsigned long long across = depth + column, down = depth + line;
      left[line][column] = x < 4096u && across < terms ? braid_decode_bfloat16(a[offsetA + x * 1ull + across * 4096ull]) : 0.0f;
      right[line][column] = down < terms && y < 7168u ? braid_decode_bfloat16(b[offsetB + down * 7168ull + y * 1ull]) : 0.0f;
    }
    __syncthreads();
    for (int z = 0; z < 32; z++) {
#pragma unroll
      for (int i = 0; i < 4; i++) sum[i] = (sum[i] + (left[row + i][z] * right[z][column]));
    }
    __syncthreads();
    if ((depth + 32u) % 256u == 0 || depth + 32u >= terms) {
#pragma unroll
      for (int i = 0; i < 4; i++) {
        sum1[i] = (sum1[i] + sum[i]);
        sum[i] = 0.0f;
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const unsigned long long x = firstRow + row + i, y = firstColumn + column;
    if (x < 4096u && y < 7168u) {
      c[offsetC + x * 7168ull + y * 1ull] = braid_encode_bfloat16(sum1[i]);
    }
  }
}
