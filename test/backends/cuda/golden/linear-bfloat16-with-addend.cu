// grid 2 x 3 x 1, block 256 x 1 x 1, parameters [{"kind":"input","position":0},{"kind":"input","position":1},{"kind":"input","position":2},{"kind":"input","position":3},{"kind":"output","position":0}]
static __device__ __forceinline__ float braid_decode_bfloat16(unsigned short x) {
  return __uint_as_float((unsigned)x << 16);
}
static __device__ __forceinline__ unsigned short braid_encode_bfloat16(float x) {
  unsigned short y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
extern "C" __global__ void __launch_bounds__(256) braid_kernel(const unsigned short *a, const unsigned short *b, const unsigned short *bias, const unsigned short *addend, unsigned short *c) {
  __shared__ float left[32][33];
  __shared__ float right[32][33];
  unsigned long long offsetA = 0, offsetB = 0, offsetC = 0;
  unsigned rest = blockIdx.z;
  const unsigned column = threadIdx.x % 32u;
  const unsigned row = threadIdx.x / 32u * 4u;
  const unsigned firstRow = blockIdx.y * 32u;
  const unsigned firstColumn = blockIdx.x * 32u;
  float sum[4];
#pragma unroll
  for (int i = 0; i < 4; i++) sum[i] = 0.0f;
  for (unsigned depth = 0; depth < 50u; depth += 32u) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const unsigned line = row + i;
      const unsigned long long x = firstRow + line, y = firstColumn + column;
      const unsigned long long across = depth + column, down = depth + line;
      left[line][column] = x < 70u && across < 50u ? braid_decode_bfloat16(a[offsetA + x * 50ull + across * 1ull]) : 0.0f;
      right[line][column] = down < 50u && y < 40u ? braid_decode_bfloat16(b[offsetB + down * 1ull + y * 50ull]) : 0.0f;
    }
    __syncthreads();
    for (int z = 0; z < 32; z++) {
#pragma unroll
      for (int i = 0; i < 4; i++) sum[i] = (sum[i] + (left[row + i][z] * right[z][column]));
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const unsigned long long x = firstRow + row + i, y = firstColumn + column;
    if (x < 70u && y < 40u) {
      const float offset = braid_decode_bfloat16(bias[y * 1ull]);
      const float before = braid_decode_bfloat16(addend[offsetC + x * 40ull + y * 1ull]);
      c[offsetC + x * 40ull + y * 1ull] = braid_encode_bfloat16(((sum[i] + before) + offset));
    }
  }
}
