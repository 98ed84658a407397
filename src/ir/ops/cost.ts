/**
 * The CPU work of reading, computing or writing one element, in multiply-adds of the GEMM kernels, which take 0.02 to 0.05 ns
 * each on a core of 2024.
 */
export const elementWork = 4;
