/**
 * Multiplies the A [M, K] of each device by its B [N, K], both of 8-bit floats with scales of the device, adds over the
 * devices, and leaves each device its rows of the sum: the program behind braid_torch's scaled_matmul_reduce_scatter. With
 * ROWWISE=1 each row of A and of B has a scale, otherwise each tensor. E5M2 says which of A (1) and B (2) are float8_e5m2,
 * and FAST=1 is use_fast_accum of torch._scaled_mm.
 */
import { DeviceMesh, Fusion, program, scaledLinear, sum } from "@braid-compiler/braid";

const defaults = { M: 4096, K: 4096, N: 4096, ROWWISE: 1, E5M2: 0, FAST: 0, DTYPE: "bfloat16" } as const;

export default program(defaults, ({ devices, params: { M, K, N, ROWWISE, E5M2, FAST, DTYPE } }) => {
  const f = new Fusion();
  const options = { dtype: DTYPE, fastAccumulation: FAST === 1 };
  const a = f.input([devices, devices, M / devices, K], E5M2 % 2 === 1 ? "float8_e5m2" : "float8_e4m3fn");
  const b = f.input([devices, N, K], E5M2 > 1 ? "float8_e5m2" : "float8_e4m3fn");
  const ofA = f.input(ROWWISE === 1 ? [devices, devices, M / devices] : [devices], "float");
  const ofB = f.input(ROWWISE === 1 ? [devices, N] : [devices], "float");
  const partial = scaledLinear(a, b, ofA, ofB, options);
  const c = sum(partial, [0]);
  f.output(c);

  const mesh = DeviceMesh.range(devices);
  for (const tensor of [a, b, ofA, ofB, partial, c]) tensor.setDeviceMesh(mesh);
  for (const tensor of [a, b, ofA, ofB]) tensor.axis(0).parallelize("DIDx");
  // In iteration i a device computes the part of the device i positions after it, and sends it there.
  for (const tensor of ROWWISE === 1 ? [a, ofA] : [a]) tensor.axis(1).parallelize("Stream");
  partial.axis(0).parallelize("Stream");
  partial.axis(1).parallelize("DIDx");
  c.axis(1).parallelize("DIDx");
  return f;
});
