/**
 * Multiplies the A [M, K] of each device by its B, adds over the devices, and leaves each device its rows of the sum: the
 * program behind braid_torch's matmul_reduce_scatter. With ROWS=1 B is [K, N], otherwise [N, K], as in nn.Linear.
 */
import { DeviceMesh, Fusion, matmul, permute, program, sum } from "braid";

const defaults = { M: 4096, K: 4096, N: 4096, ROWS: 0, DTYPE: "bfloat16" } as const;

export default program(defaults, ({ devices, params: { M, K, N, ROWS, DTYPE } }) => {
  const f = new Fusion();
  const a = f.input([devices, devices, M / devices, K], DTYPE);
  const b = f.input(ROWS === 1 ? [devices, 1, K, N] : [devices, 1, N, K], DTYPE);
  const right = ROWS === 1 ? b : permute(b, [0, 1, 3, 2]);
  const partial = matmul(a, right);
  const c = sum(partial, [0]);
  f.output(c);

  const mesh = DeviceMesh.range(devices);
  for (const tensor of [a, b, right, partial, c]) tensor.setDeviceMesh(mesh);
  for (const tensor of [a, b, right]) tensor.axis(0).parallelize("DIDx");
  // In iteration i a device computes the rows of the device i positions after it, and sends them there.
  a.axis(1).parallelize("Stream");
  partial.axis(0).parallelize("Stream");
  partial.axis(1).parallelize("DIDx");
  c.axis(1).parallelize("DIDx");
  return f;
});
