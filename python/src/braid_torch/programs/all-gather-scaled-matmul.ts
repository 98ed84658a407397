/**
 * Gathers A [M, K] of 8-bit floats, whose rows are sharded over the devices, with its scales, and multiplies it by weights
 * [N, K] of each device: the program behind braid_torch's all_gather_scaled_matmul. N0 to N3 are the weights' columns, 0
 * for none. With ROWWISE=1 each row of A and of the weights has a scale, otherwise each tensor. The first output is the
 * gathered A: a copy, made while products run, of the memory that peers write. E5M2 says which of A (1) and the weights
 * (2) are float8_e5m2, and FAST=1 is use_fast_accum of torch._scaled_mm.
 */
import { DeviceMesh, Fusion, program, scaledLinear, set } from "@braid-compiler/braid";

const widths = { N0: 4096, N1: 0, N2: 0, N3: 0 };
const defaults = { M: 4096, K: 4096, ...widths, ROWWISE: 1, E5M2: 0, FAST: 0, DTYPE: "bfloat16" } as const;

export default program(defaults, ({ devices, params: { M, K, N0, N1, N2, N3, ROWWISE, E5M2, FAST, DTYPE } }) => {
  const f = new Fusion();
  const options = { dtype: DTYPE, fastAccumulation: FAST === 1 };
  const mesh = DeviceMesh.range(devices);
  const columns = [N0, N1, N2, N3].filter((n) => n > 0);
  const a = f.input([devices, M / devices, K], E5M2 % 2 === 1 ? "float8_e5m2" : "float8_e4m3fn");
  const weights = columns.map((n) => f.input([n, K], E5M2 > 1 ? "float8_e5m2" : "float8_e4m3fn"));
  const scale = f.input(ROWWISE === 1 ? [devices, M / devices] : [], "float");
  const scales = columns.map((n) => f.input(ROWWISE === 1 ? [n] : [], "float"));
  const [gathered, ofRows] = [set(a), ROWWISE === 1 ? set(scale) : scale];
  const results = weights.map((w, i) => scaledLinear(gathered, w, ofRows, scales[i] ?? scale, options));
  const returned = set(gathered);
  for (const output of [returned, ...results]) f.output(output);

  for (const tensor of [a, ...weights, scale, ...scales, gathered, returned, ofRows, ...results])
    tensor.setDeviceMesh(mesh);
  for (const tensor of ROWWISE === 1 ? [a, scale] : [a]) tensor.axis(0).parallelize("DIDx");
  for (const tensor of [gathered, returned, ...(ROWWISE === 1 ? [ofRows] : []), ...results])
    tensor.axis(0).parallelize("Stream");
  return f;
});
