// grid 1 x 1 x 1, block 256 x 1 x 1, parameters [{"kind":"output","position":0}]
extern "C" __global__ void __launch_bounds__(256) braid_kernel(long long *output0) {
  const unsigned first = (unsigned)blockIdx.x * 256u + threadIdx.x;
#pragma unroll
  for (int u = 0; u < 1; u++) {
    const unsigned t = first + u * 256u;
    if (t >= 50u) break;
    const unsigned n0i0 = (t) * 2u;
  }
#pragma unroll
  for (int u = 0; u < 1; u++) {
    const unsigned t = first + u * 256u;
    if (t >= 50u) break;
    const unsigned n0i0 = (t) * 2u;
    alignas(16) long long n0s[2];
#pragma unroll
    for (int v = 0; v < 2; v++) {
      const long long n0v0 = 0ll;
      const auto n0result = n0v0;
      n0s[v] = 0ll;
    }
    *(uint4 *)(output0 + (n0i0)) = *(const uint4 *)(n0s);
  }
}
