/**
 * Allgather, then matmul, on several hosts: every chunk of rows of X is sharded over the hosts, and each host's part
 * over its devices. Devices of equal place on their hosts exchange their shards, so that between hosts every row moves
 * once; then the devices of a host gather all of them. Both happen for chunk i+1 while chunk i is multiplied.
 *
 *   npx braid run examples/hosts/allgather-matmul.ts --check
 *   npx braid run examples/hosts/allgather-matmul.ts --check --devices-per-host 4 --backend cuda
 */
import { DeviceMesh, Fusion, linear, program } from "@braid-compiler/braid";

export default program(
  { S: 4, M: 768, K: 256, N: 128, DTYPE: "float" },
  ({ devices, hosts, params: { S, M, K, N, DTYPE } }) => {
    const f = new Fusion();
    const x = f.input([M, K], DTYPE);
    const w = f.input([N, K], DTYPE);
    const y = linear(x, w);
    f.output(y);

    const mesh = DeviceMesh.ofShape([hosts, devices / hosts]);
    for (const tensor of [x, w, y]) tensor.setDeviceMesh(mesh);
    x.outerSplit(0, S); // S chunks of rows,
    x.outerSplit(1, hosts).parallelize("DIDy"); // each of them sharded over the hosts,
    x.outerSplit(2, devices / hosts).parallelize("DIDx"); // and over the devices of a host
    y.outerSplit(0, S).parallelize("Stream");
    return f;
  },
);
