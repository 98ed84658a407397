/**
 * Multiplies the A [M, K] of each device by its B, adds over the devices, and leaves each device its rows of the sum, with
 * LAST=1 its columns: the program behind braid_torch's matmul_reduce_scatter. With ROWS=1 B is [K, N], otherwise [N, K],
 * as in nn.Linear.
 */
import { DeviceMesh, Fusion, matmul, permute, program, sum } from "@braid-compiler/braid";

const defaults = { M: 4096, K: 4096, N: 4096, LAST: 0, ROWS: 0, DTYPE: "bfloat16" } as const;

export default program(defaults, ({ devices, params: { M, K, N, LAST, ROWS, DTYPE } }) => {
  const f = new Fusion();
  const [rows, columns] = LAST === 1 ? [1, devices] : [devices, 1];
  const a = f.input([devices, rows, M / rows, K], DTYPE);
  const b = f.input(ROWS === 1 ? [devices, K, columns, N / columns] : [devices, columns, N / columns, K], DTYPE);
  const right = permute(b, ROWS === 1 ? [0, 2, 1, 3] : [0, 1, 3, 2]);
  const partial = matmul(a, right);
  const c = sum(partial, [0]);
  f.output(c);

  const mesh = DeviceMesh.range(devices);
  for (const tensor of [a, b, right, partial, c]) tensor.setDeviceMesh(mesh);
  for (const tensor of [a, b, right]) tensor.axis(0).parallelize("DIDx");
  // In iteration i a device computes the part of the device i positions after it, and sends it there.
  if (LAST === 1) {
    b.axis(ROWS === 1 ? 2 : 1).parallelize("Stream");
    right.axis(1).parallelize("Stream");
  } else a.axis(1).parallelize("Stream");
  partial.axis(0).parallelize("Stream");
  partial.axis(1).parallelize("DIDx");
  c.axis(1).parallelize("DIDx");
  return f;
});
