/**
 * Allgather, then matmul, as a ring: the rows of A are sharded over the devices, and the sharded axis itself becomes
 * the Stream axis. In iteration i every device multiplies the shard of the device i places after it. The first shard is
 * its own, and no two devices read from the same peer at once. An option selects how shards are moved:
 *
 *   npx braid run examples/ring-allgather-matmul.ts --check
 *
 * sends and receives with NCCL, `--backend cuda` copies out of the peers' memory (`--protocol put`: into it), `--p2p
 * broadcast` broadcasts one shard per iteration, and `--p2p linear` communicates with device i in iteration i.
 */
import { DeviceMesh, Fusion, matmul, program } from "braid";

export default program({ M: 1536, K: 256, N: 128 }, ({ devices, params: { M, K, N } }) => {
  const f = new Fusion();
  const a = f.input([devices, M / devices, K], "float");
  const b = f.input([K, N], "float");
  const c = matmul(a, b);
  f.output(c);

  const mesh = DeviceMesh.range(devices);
  for (const tensor of [a, b, c]) tensor.setDeviceMesh(mesh);
  a.axis(0).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  return f;
});
