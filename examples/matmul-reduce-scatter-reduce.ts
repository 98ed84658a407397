/**
 * Matmul, then reduce-scatter, with the reduced axis as the Stream axis: in each iteration all devices compute the rows
 * of one device, and reduce them there.
 *
 *   npx braid run examples/matmul-reduce-scatter-reduce.ts --check
 *
 * `--p2p broadcast` makes that a Reduce per device. The other values of `--p2p` exchange the partial sums and add them
 * after the loop, like examples/matmul-reduce-scatter-p2p.ts; the bits are the same.
 */
import { DeviceMesh, Fusion, matmul, program, sum } from "braid";

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
  b.axis(0).parallelize("DIDx");
  partial.axis(0).parallelize("DIDx");
  partial.axis(1).parallelize("Stream");
  c.axis(0).parallelize("Stream");
  // Axis 0 is the reduced one; it stays in the tensor's domain, as in nvFuser.
  c.axis(1).parallelize("DIDx");
  return f;
});
