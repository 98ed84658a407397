/**
 * Allgather, then matmul, as a pipeline, in nvFuser's form: the chunks and the devices are axes of their own, [S, D, M /
 * (S D), K], and every tensor has its annotation. It computes what examples/allgather-matmul.ts computes. With these
 * options its host program is nvFuser's (#4387), statement by statement:
 *
 *   npx braid run examples/nvfuser/allgather-matmul.ts --check
 *   npx braid lower examples/nvfuser/allgather-matmul.ts --as nvfuser:2025-05
 */
import { DeviceMesh, Fusion, matmul, program } from "@braid-compiler/braid";

export default program({ S: 8, M: 1536, K: 256, N: 128 }, ({ devices, params: { S, M, K, N } }) => {
  const f = new Fusion();
  const a = f.input([S, devices, M / (S * devices), K], "float");
  const b = f.input([K, N], "float");
  const c = matmul(a, b);
  f.output(c);

  const mesh = DeviceMesh.range(devices);
  for (const tensor of [a, b, c]) tensor.setDeviceMesh(mesh);
  a.axis(1).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  return f;
});
