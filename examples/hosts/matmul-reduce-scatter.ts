/**
 * Matmul, then reduce-scatter, on several hosts: K is sharded over all devices. The devices of a host first add their
 * partial sums, each for its share of the rows of a chunk; then devices of equal place on their hosts add those sums, so
 * that between hosts every row moves once per host.
 *
 *   npx braid run examples/hosts/matmul-reduce-scatter.ts --check
 *   npx braid run examples/hosts/matmul-reduce-scatter.ts --check --devices-per-host 4 --backend cuda
 */
import { add, DeviceMesh, Fusion, linear, program } from "@braid-compiler/braid";

export default program(
  { S: 4, M: 192, K: 768, N: 64, DTYPE: "float" },
  ({ devices, hosts, params: { S, M, K, N, DTYPE } }) => {
    const f = new Fusion();
    const x = f.input([M, K], DTYPE);
    const w = f.input([N, K], DTYPE);
    const residual = f.input([M, N], DTYPE);
    const y = linear(x, w);
    f.output(add(y, residual));

    const mesh = DeviceMesh.ofShape([hosts, devices / hosts]);
    for (const tensor of [x, w, residual]) tensor.setDeviceMesh(mesh);
    for (const tensor of [x, w]) {
      tensor.outerSplit(1, hosts).parallelize("DIDy");
      tensor.outerSplit(2, devices / hosts).parallelize("DIDx");
    }
    residual.outerSplit(0, S); // S chunks of rows,
    residual.outerSplit(1, hosts).parallelize("DIDy"); // each of them sharded over the hosts,
    residual.outerSplit(2, devices / hosts).parallelize("DIDx"); // and over the devices of a host
    y.outerSplit(0, S).parallelize("Stream");
    return f;
  },
);
