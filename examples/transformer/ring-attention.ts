/**
 * Ring attention: every device has a block of the tokens. Blocks of keys and values go around a ring, and each device
 * attends to the block that it holds while it sends the block on and receives the next one. No device ever has all keys.
 * The results of the blocks are joined with running maxima and sums of each row. A host program written by hand; with
 * the causal mask a device skips the blocks after its own.
 *
 *   npx braid run examples/transformer/ring-attention.ts --check
 */
import {
  add,
  amax,
  broadcast,
  DeviceMesh,
  exp,
  Fusion,
  ge,
  HostProgramBuilder,
  maximum,
  mul,
  permute,
  program,
  reshape,
  sdpa,
  select,
  sub,
  sum,
  unsqueeze,
  where,
} from "@braid-compiler/braid";

export default program(
  { HEADS: 4, L: 48, D: 8 },
  ({ devices, rank, params: { HEADS, L, D } }) => {
    const h = new HostProgramBuilder();
    const mesh = DeviceMesh.range(devices);
    const sharded = { mesh, parallel: ["DIDx"] } as const;
    const rows = L / devices;
    const queries = h.input([devices, HEADS, rows, D], sharded);
    const own = h.input([devices, 2, HEADS, rows, D], sharded);
    const result = h.allocate(h.tensor([devices, HEADS, rows, D], sharded));
    h.output(result);
    const buffers = [0, 1].map(() => h.allocate(h.tensor([2, HEADS, rows, D], { mesh })));

    const q = h.select(queries, 0, 0);
    const { first, later } = units(HEADS, rows, D);
    const positions = h.iota(rows);
    let held = h.select(own, 0, 0);
    let [m, l, o] = [q, q, q];
    for (let step = 0; step < devices; step++) {
      const next = buffers[step % 2];
      if (next === undefined) break;
      h.startCoalescing();
      if (step + 1 < devices) {
        h.recv(next, { peer: (rank + devices - 1) % devices });
        h.send(held, { peer: (rank + 1) % devices });
      }
      const exchange = h.endCoalescing();
      if (step <= rank) {
        const [k, v] = [h.select(held, 0, 0), h.select(held, 0, 1)];
        const scores = h.matmul(q, h.permute(k, [0, 2, 1]));
        const [p = q, ...rest] =
          step === 0 ? h.postOnStream(first, [scores, positions]) : h.postOnStream(later, [scores, m, l, o]);
        const product = h.matmul(p, v);
        [m = q, l = q] = rest;
        o = rest[2] === undefined ? product : h.add(rest[2], product);
      }
      h.wait(exchange);
      held = next;
    }
    h.div(o, l, { out: h.select(result, 0, 0) });
    return h.build();
  },
  {
    reference: ({ devices, params: { HEADS, L, D } }) => {
      const f = new Fusion();
      const rows = L / devices;
      const q = f.input([devices, HEADS, rows, D]);
      const kv = f.input([devices, 2, HEADS, rows, D]);
      const whole = (x: typeof q) => reshape(permute(x, [1, 0, 2, 3]), [HEADS, L, D]);
      const { output } = sdpa(whole(q), whole(select(kv, 1, 0)), whole(select(kv, 1, 1)), { causal: "topLeft" });
      f.output(permute(reshape(output, [HEADS, devices, rows, D]), [1, 0, 2, 3]));
      return f;
    },
  },
);

/**
 * Of a block of scores: p = exp(scores - m), the row maxima m and the row sums l so far. `first` masks the device's own
 * block. `later` also scales the earlier result o to the new maxima.
 */
function units(HEADS: number, rows: number, D: number) {
  const [first, later] = [new Fusion(), new Fusion()];
  const scale = 1 / Math.sqrt(D);
  {
    const scores = mul(first.input([HEADS, rows, rows]), scale);
    const positions = first.input([rows], "int64");
    const along = (axis: number) => broadcast(unsqueeze(positions, axis), [true, false, false]);
    const visible = where(ge(along(1), along(0)), scores, -Infinity);
    const m = unsqueeze(amax(visible, [2]), 2);
    const p = exp(sub(visible, m));
    for (const output of [p, m, unsqueeze(sum(p, [2]), 2)]) first.output(output);
  }
  const scores = mul(later.input([HEADS, rows, rows]), scale);
  const [m, l] = [later.input([HEADS, rows, 1]), later.input([HEADS, rows, 1])];
  const o = later.input([HEADS, rows, D]);
  const most = maximum(m, unsqueeze(amax(scores, [2]), 2));
  const shrink = exp(sub(m, most));
  const p = exp(sub(scores, most));
  const total = add(mul(l, shrink), unsqueeze(sum(p, [2]), 2));
  for (const output of [p, most, total, mul(o, shrink)]) later.output(output);
  return { first, later };
}
