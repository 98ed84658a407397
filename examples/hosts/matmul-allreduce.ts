/**
 * Matmul, then all-reduce, on several hosts: K is sharded over all devices, and every device needs the whole sum. The
 * devices of a host scatter the sum of each chunk among them, the hosts add their shares, and the devices of a host
 * gather them again: between hosts, each device moves its share instead of the whole.
 *
 *   npx braid run examples/hosts/matmul-allreduce.ts --check
 *   npx braid run examples/hosts/matmul-allreduce.ts --check --devices-per-host 4 --backend cuda
 */
import { DeviceMesh, Fusion, linear, program, set } from "@braid-compiler/braid";

export default program(
  { S: 4, M: 192, K: 768, N: 64, DTYPE: "float" },
  ({ devices, hosts, params: { S, M, K, N, DTYPE } }) => {
    const f = new Fusion();
    const x = f.input([M, K], DTYPE);
    const w = f.input([N, K], DTYPE);
    const scattered = linear(x, w);
    const y = set(scattered);
    f.output(y);

    const mesh = DeviceMesh.ofShape([hosts, devices / hosts]);
    for (const tensor of [x, w, scattered, y]) tensor.setDeviceMesh(mesh);
    for (const tensor of [x, w]) {
      tensor.outerSplit(1, hosts).parallelize("DIDy");
      tensor.outerSplit(2, devices / hosts).parallelize("DIDx");
    }
    for (const tensor of [scattered, y]) tensor.outerSplit(0, S).parallelize("Stream"); // S chunks of rows,
    scattered.outerSplit(1, devices / hosts).parallelize("DIDx"); // each scattered over the devices of a host
    return f;
  },
);
