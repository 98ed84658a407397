// grid 12 x 1 x 1, block 256 x 1 x 1, parameters [{"kind":"input","position":0},{"kind":"input","position":1},{"kind":"output","position":0}]
extern "C" __global__ void __launch_bounds__(256) braid_kernel(const float *input0, const float *input1, float *output0) {
  __shared__ float tile0[64][65];
  const unsigned corner2 = ((unsigned)blockIdx.x % 2u) * 64u;
  const unsigned block2 = (unsigned)blockIdx.x / 2u;
  const unsigned corner1 = (block2 % 2u) * 64u;
  const unsigned block1 = block2 / 2u;
  const unsigned p0 = block1;
  alignas(16) float n0r0[16][1];
  alignas(16) float n0r1[16][1];
  alignas(16) float read0[16][1];
#pragma unroll
  for (int u = 0; u < 16; u++) {
    const unsigned k = threadIdx.x + u * 256u;
    const unsigned row = k / 64u, column = k % 64u;
    const unsigned p2 = corner2 + row, p1 = corner1 + column;
    if (p2 >= 70u || p1 >= 100u) continue;
    const unsigned n0i0 = p0;
    const unsigned n0i1 = p1;
    const unsigned n0i2 = p2;
    *(unsigned *)(read0[u]) = *(const unsigned *)(input0 + (n0i0 * 7000u + n0i1 + n0i2 * 100u));
  }
#pragma unroll
  for (int u = 0; u < 16; u++) {
    const unsigned k = threadIdx.x + u * 256u;
    const unsigned row = k / 64u, column = k % 64u;
    const unsigned p1 = corner1 + row, p2 = corner2 + column;
    if (p1 >= 100u || p2 >= 70u) continue;
    const unsigned n0i0 = p0;
    const unsigned n0i1 = p1;
    const unsigned n0i2 = p2;
    const unsigned n0l1 = n0i0 * 7000u + n0i1 * 70u + n0i2;
    *(unsigned *)(n0r1[u]) = *(const unsigned *)(input1 + n0l1);
  }
#pragma unroll
  for (int u = 0; u < 16; u++) {
    const unsigned k = threadIdx.x + u * 256u;
    const unsigned row = k / 64u, column = k % 64u;
    const unsigned p2 = corner2 + row, p1 = corner1 + column;
    if (p2 >= 70u || p1 >= 100u) continue;
    tile0[row][column + 0u] = read0[u][0];
  }
  __syncthreads();
#pragma unroll
  for (int u = 0; u < 16; u++) {
    const unsigned k = threadIdx.x + u * 256u;
    const unsigned row = k / 64u, column = k % 64u;
    const unsigned p1 = corner1 + row, p2 = corner2 + column;
    if (p1 >= 100u || p2 >= 70u) continue;
    const unsigned n0i0 = p0;
    const unsigned n0i1 = p1;
    const unsigned n0i2 = p2;
    n0r0[u][0] = tile0[column + 0u][row];
    alignas(16) float n0s[1];
#pragma unroll
    for (int v = 0; v < 1; v++) {
      const float n0v0 = n0r0[u][v];
      const float n0v1 = n0r1[u][v];
      const float n0v2 = (n0v0 + n0v1);
      const auto n0result = n0v2;
      n0s[v] = (n0v0 + n0v1);
    }
    *(unsigned *)(output0 + (n0i0 * 7000u + n0i1 * 70u + n0i2)) = *(const unsigned *)(n0s);
  }
}
