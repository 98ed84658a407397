/**
 * Matmul, then reduce-scatter, by sends and receives, in nvFuser's form: the partial sums of the devices are an axis of
 * their own, [D, D, M / D, N], so that a loop can run over them. K is sharded, and every device has a partial sum of
 * every row. In iteration i each device computes the rows of the device i places after it, and sends them there. The sum
 * of the received rows is local. The matmul shares the loop with the exchange if the resharding is inserted after it:
 *
 *   npx braid run examples/nvfuser/matmul-reduce-scatter-p2p.ts --check
 *   npx braid run examples/nvfuser/matmul-reduce-scatter-p2p.ts --check --schedule insertReshardingAfter
 *
 * Without `--schedule insertReshardingAfter` A itself is exchanged before the matmul.
 */
import { DeviceMesh, Fusion, matmul, program, sum } from "@braid-compiler/braid";

export default program({ M: 768, K: 768, N: 64 }, ({ devices, params: { M, K, N } }) => {
  const f = new Fusion();
  const a = f.input([devices, devices, M / devices, K / devices], "float");
  const b = f.input([devices, 1, K / devices, N], "float");
  const partial = matmul(a, b);
  const c = sum(partial, [0]);
  f.output(c);

  const mesh = DeviceMesh.range(devices);
  for (const tensor of [a, b, partial, c]) tensor.setDeviceMesh(mesh);
  a.axis(0).parallelize("DIDx");
  a.axis(1).parallelize("Stream");
  b.axis(0).parallelize("DIDx");
  // The partial sums change from sharded by K to sharded by rows.
  partial.axis(0).parallelize("Stream");
  partial.axis(1).parallelize("DIDx");
  c.axis(1).parallelize("DIDx");
  return f;
});
