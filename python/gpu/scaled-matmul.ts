/** A scaled matmul that each device does for itself: bench_models.py times it beside torch._scaled_mm. */
import { Fusion, program, scaledLinear } from "@braid-compiler/braid";

const defaults = { M: 8192, K: 8192, N: 8192, ROWWISE: 1, FAST: 0 } as const;

export default program(defaults, ({ params: { M, K, N, ROWWISE, FAST } }) => {
  const f = new Fusion();
  const [a, b] = [f.input([M, K], "float8_e4m3fn"), f.input([N, K], "float8_e4m3fn")];
  const scales = [M, N].map((rows) => f.input(ROWWISE === 1 ? [rows] : [], "float"));
  f.output(scaledLinear(a, b, scales[0] ?? a, scales[1] ?? b, { fastAccumulation: FAST === 1 }));
  return f;
});
