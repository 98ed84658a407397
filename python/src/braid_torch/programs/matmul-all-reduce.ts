/**
 * Multiplies the A [M, K] of each device by its B and adds over the devices: the program behind braid_torch's
 * matmul_all_reduce. The rows are added in CHUNKS parts, each while the next one is multiplied. With ROWS=1 B is [K, N],
 * otherwise [N, K], as in nn.Linear.
 */
import { DeviceMesh, Fusion, matmul, permute, program, sum } from "@braid-compiler/braid";

const defaults = { M: 4096, K: 4096, N: 4096, CHUNKS: 4, ROWS: 0, DTYPE: "bfloat16" } as const;

export default program(defaults, ({ devices, params: { M, K, N, CHUNKS, ROWS, DTYPE } }) => {
  const f = new Fusion();
  const a = f.input([CHUNKS, devices, M / CHUNKS, K], DTYPE);
  const b = f.input(ROWS === 1 ? [1, devices, K, N] : [1, devices, N, K], DTYPE);
  const right = ROWS === 1 ? b : permute(b, [0, 1, 3, 2]);
  const partial = matmul(a, right);
  const c = sum(partial, [1]);
  f.output(c);

  const mesh = DeviceMesh.range(devices);
  for (const tensor of [a, b, right, partial, c]) tensor.setDeviceMesh(mesh);
  for (const tensor of [a, b, right, partial]) tensor.axis(1).parallelize("DIDx");
  for (const tensor of [partial, c]) tensor.axis(0).parallelize("Stream");
  return f;
});
