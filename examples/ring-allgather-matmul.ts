/**
 * Allgather, then matmul, as a ring: the rows of X are sharded over the devices, and the shards are the chunks of Y. In
 * iteration i every device multiplies the shard of the device i places after it. The first shard is its own, and no two
 * devices read from the same peer at once. An option selects how shards are moved:
 *
 *   npx braid run examples/ring-allgather-matmul.ts --check
 *
 * sends and receives with NCCL, `--backend cuda` copies out of the peers' memory (`--schedule protocol=put`: into it),
 * `--schedule p2p=broadcast` broadcasts one shard per iteration, and `--schedule p2p=linear` communicates with device i in
 * iteration i.
 */
import { DeviceMesh, Fusion, linear, program } from "@braid-compiler/braid";

export default program({ M: 1536, K: 256, N: 128 }, ({ devices, params: { M, K, N } }) => {
  const f = new Fusion();
  const x = f.input([M, K], "float");
  const w = f.input([N, K], "float");
  const y = linear(x, w);
  f.output(y);

  const mesh = DeviceMesh.range(devices);
  for (const tensor of [x, w, y]) tensor.setDeviceMesh(mesh);
  x.outerSplit(0, devices).parallelize("DIDx");
  y.outerSplit(0, devices).parallelize("Stream");
  return f;
});
