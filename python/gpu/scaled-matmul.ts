/** A scaled matmul that each device does for itself: bench_models.py times it beside torch._scaled_mm. */
import { DeviceMesh, Fusion, program, scaledLinear } from "@braid-compiler/braid";

const defaults = { M: 8192, K: 8192, N: 8192, ROWWISE: 1, FAST: 0 } as const;

export default program(defaults, ({ devices, params: { M, K, N, ROWWISE, FAST } }) => {
  const f = new Fusion();
  const [a, b] = [f.input([M, K], "float8_e4m3fn"), f.input([N, K], "float8_e4m3fn")];
  const [ofA, ofB] = [f.input(ROWWISE === 1 ? [M] : [], "float"), f.input(ROWWISE === 1 ? [N] : [], "float")];
  const c = scaledLinear(a, b, ofA, ofB, { fastAccumulation: FAST === 1 });
  f.output(c);
  for (const tensor of [a, b, ofA, ofB, c]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  return f;
});
