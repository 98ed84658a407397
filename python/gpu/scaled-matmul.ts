/** A scaled matmul that each device does for itself: bench_models.py times it beside torch._scaled_mm. */
import { DeviceMesh, Fusion, permute, program, scaledLinear } from "@braid-compiler/braid";

// BLOCKS, if not 0, are the rows of a block of B, 1 or 128: then those of A have 1, and its scales lie as cuBLASLt reads them.
const defaults = { M: 8192, K: 8192, N: 8192, ROWWISE: 1, FAST: 0, BLOCKS: 0 } as const;

export default program(defaults, ({ devices, params: { M, K, N, ROWWISE, FAST, BLOCKS } }) => {
  const f = new Fusion();
  const [a, b] = [f.input([M, K], "float8_e4m3fn"), f.input([N, K], "float8_e4m3fn")];
  const lines = (rows: number): readonly number[] => (BLOCKS === 0 ? [rows].slice(1 - ROWWISE) : [K / 128, rows]);
  const ofA = f.input([...lines(M)], "float");
  const ofB = f.input(BLOCKS === 128 ? [Math.ceil(N / 128), K / 128] : [...lines(N)], "float");
  const turned = BLOCKS === 1 ? permute(ofB, [1, 0]) : ofB;
  const c = scaledLinear(a, b, BLOCKS === 0 ? ofA : permute(ofA, [1, 0]), turned, { fastAccumulation: FAST === 1 });
  f.output(c);
  for (const tensor of [a, b, ofA, ofB, c]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  return f;
});
