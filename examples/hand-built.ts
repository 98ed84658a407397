/**
 * A host program written by hand: Allgather and matmul as a ring of neighbours. Every device multiplies the shard of A
 * that it holds, while it sends that shard to the next device and receives one from the previous device. The lowering
 * has no such form, so the statements are built here. `reference` is one line that computes the same.
 *
 *   npx braid run examples/hand-built.ts --check
 *
 * `braid lower` prints it, `braid verify` proves it free of races and deadlocks.
 */
import { DeviceMesh, Fusion, HostProgramBuilder, matmul, program } from "@braid-compiler/braid";

export default program(
  { M: 1536, K: 256, N: 128 },
  ({ devices, params: { M, K, N } }) => {
    const h = new HostProgramBuilder();
    const mesh = DeviceMesh.range(devices);
    const a = h.input([devices, M / devices, K], { mesh, parallel: ["DIDx"] });
    const b = h.input([K, N], { mesh });
    const c = h.tensor([devices, M / devices, N, { reduced: K }], { mesh });
    const gathered = h.tensor(a.extents, { mesh });
    h.output(c);
    h.allocate(gathered);
    h.allocate(c);

    const { add, mod, rank, sub } = h.scalars;
    const next = mod(add(rank, 1), devices);
    const previous = mod(add(rank, devices - 1), devices);
    /** The shard that a device holds after `steps` steps: first its own, then those of its neighbours. */
    const held = (steps: Parameters<typeof sub>[1]) => mod(sub(add(rank, devices), steps), devices);

    h.set(h.select(a, 0, 0), { out: h.select(gathered, 0, rank) });
    if (devices > 1) {
      h.forLoop(devices - 1, (step) => {
        const own = h.select(gathered, 0, held(step));
        h.startCoalescing();
        h.recv(h.select(gathered, 0, held(add(step, 1))), { peer: previous });
        h.send(own, { peer: next });
        const exchange = h.endCoalescing();
        h.matmul(own, b, { out: h.select(c, 0, held(step)) });
        h.wait(exchange);
      });
    }
    h.matmul(h.select(gathered, 0, next), b, { out: h.select(c, 0, next) });
    return h.build();
  },
  {
    reference: ({ devices, params: { M, K, N } }) => {
      const f = new Fusion();
      f.output(matmul(f.input([devices, M / devices, K]), f.input([K, N])));
      return f;
    },
  },
);
