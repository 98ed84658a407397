// grid 1 x 1 x 1, block 256 x 1 x 1, parameters [{"kind":"input","position":0},{"kind":"input","position":1},{"kind":"output","position":0}]
static __device__ __forceinline__ int braid_div(int x, int y) {
  return y == -1 ? (int)(0u - (unsigned)x) : x / y;
}
static __device__ __forceinline__ long long braid_div(long long x, long long y) {
  return y == -1 ? (long long)(0ull - (unsigned long long)x) : x / y;
}
extern "C" __global__ void __launch_bounds__(256) braid_kernel(const int *input0, const int *input1, int *output0) {
  const unsigned first = (unsigned)blockIdx.x * 256u + threadIdx.x;
  alignas(16) int n0r0[1][4];
  alignas(16) int n0r1[1][4];
#pragma unroll
  for (int u = 0; u < 1; u++) {
    const unsigned t = first + u * 256u;
    if (t >= 128u) break;
    const unsigned n0i0 = (t) * 4u;
    const unsigned n0l0 = n0i0;
    *(uint4 *)(n0r0[u]) = *(const uint4 *)(input0 + n0l0);
    const unsigned n0l1 = n0i0;
    *(uint4 *)(n0r1[u]) = *(const uint4 *)(input1 + n0l1);
  }
#pragma unroll
  for (int u = 0; u < 1; u++) {
    const unsigned t = first + u * 256u;
    if (t >= 128u) break;
    const unsigned n0i0 = (t) * 4u;
    alignas(16) int n0s[4];
#pragma unroll
    for (int v = 0; v < 4; v++) {
      const int n0v0 = n0r0[u][v];
      const int n0v1 = n0r1[u][v];
      const int n0v2 = (n0v1 == 0 ? 0 : (braid_div(n0v0, n0v1)));
      const auto n0result = n0v2;
      n0s[v] = (n0v1 == 0 ? 0 : (braid_div(n0v0, n0v1)));
    }
    *(uint4 *)(output0 + (n0i0)) = *(const uint4 *)(n0s);
  }
}
