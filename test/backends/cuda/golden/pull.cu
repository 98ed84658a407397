// grid 16 x 1 x 1, block 512 x 1 x 1
extern "C" __global__ void __launch_bounds__(512) braid_kernel(const uint4 *input0, uint4 *output0) {
  const unsigned first = blockIdx.x * 512u + threadIdx.x;
  for (unsigned base = first; base < 262144u; base += 65536u) {
    uint4 held[8];
#pragma unroll
    for (int u = 0; u < 8; u++) {
      const unsigned t = base + u * 8192u;
      if (t < 262144u) held[u] = input0[t];
    }
#pragma unroll
    for (int u = 0; u < 8; u++) {
      const unsigned t = base + u * 8192u;
      if (t < 262144u) output0[t] = held[u];
    }
  }
  if (first < 5u) {
    ((unsigned char *)(output0 + 262144u))[first] = ((const unsigned char *)(input0 + 262144u))[first];
  }
}
