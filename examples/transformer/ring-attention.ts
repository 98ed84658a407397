/**
 * Ring attention: every device has a block of the tokens from the front and one from the back, so that under the causal
 * mask all devices compute as much in each step. Keys and values go around a ring: each device attends to the blocks that
 * it holds while it sends them on and receives the next ones. No device ever has all keys. The results of the blocks are
 * joined with running maxima and sums of each row. A host program written by hand.
 *
 *   npx braid run examples/transformer/ring-attention.ts --check
 *
 * Of 2 n blocks, device i has i and 2 n - 1 - i: q is [2, HEADS, L / 2 n, D], and keys and values are
 * [2, 2, HEADS, L / 2 n, D], by block and then k or v. Two buffers take turns: one is received into while the other one
 * is read and sent.
 */
import {
  add,
  amax,
  broadcast,
  cat,
  chunk,
  DeviceMesh,
  exp,
  Fusion,
  ge,
  HostProgramBuilder,
  maximum,
  mul,
  program,
  reshape,
  sdpa,
  select,
  sub,
  sum,
  type TensorView,
  unsqueeze,
  where,
} from "@braid-compiler/braid";

export default program(
  { HEADS: 4, L: 48, D: 8 },
  ({ devices, rank, params: { HEADS, L, D } }) => {
    const h = new HostProgramBuilder();
    const mesh = DeviceMesh.range(devices);
    const sharded = { mesh, parallel: ["DIDx"] } as const;
    const rows = L / (2 * devices);
    const queries = h.input([devices, 2, HEADS, rows, D], sharded);
    const own = h.input([devices, 2, 2, HEADS, rows, D], sharded);
    const result = h.allocate(h.tensor([devices, 2, HEADS, rows, D], sharded));
    h.output(result);
    const buffers = [0, 1].map(() => h.allocate(h.tensor([2, 2, HEADS, rows, D], { mesh })));

    const { first, later } = units(HEADS, rows, D);
    const positions = h.iota(rows);
    const q = [0, 1].map((block) => h.select(h.select(queries, 0, 0), 0, block));
    /** Of each own block m, l and o so far. */
    const joined: TensorView[][] = [[], []];
    let held = h.select(own, 0, 0);
    for (let step = 0; step < devices; step++) {
      const next = buffers[step % 2] ?? own;
      h.startCoalescing();
      if (step + 1 < devices) {
        h.recv(next, { peer: (rank + devices - 1) % devices });
        h.send(held, { peer: (rank + 1) % devices });
      }
      const exchange = h.endCoalescing();
      const source = (rank - step + devices) % devices;
      for (const block of [0, 1]) {
        // In step 0 the block of a row's own key comes first.
        for (const keys of [1, 0]) {
          if (numberOf(source, keys, devices) > numberOf(rank, block, devices)) continue;
          const kv = h.select(held, 0, keys);
          const scores = h.matmul(q[block] ?? queries, h.permute(h.select(kv, 0, 0), [0, 2, 1]));
          const before = joined[block] ?? [];
          const inputs = before.length === 0 ? [scores, positions] : [scores, ...before];
          const [p = kv, m = kv, l = kv, scaled] = h.postOnStream(before.length === 0 ? first : later, inputs);
          const product = h.matmul(p, h.select(kv, 0, 1));
          joined[block] = [m, l, scaled === undefined ? product : h.add(scaled, product)];
        }
      }
      h.wait(exchange);
      held = next;
    }
    for (const [block, [, l = own, o = own]] of joined.entries()) {
      h.div(o, l, { out: h.select(h.select(result, 0, 0), 0, block) });
    }
    return h.build();
  },
  {
    reference: ({ devices, params: { HEADS, L, D } }) => {
      const f = new Fusion();
      const rows = L / (2 * devices);
      const q = f.input([devices, 2, HEADS, rows, D]);
      const kv = f.input([devices, 2, 2, HEADS, rows, D]);
      const places = [0, 1].flatMap((block) => Array.from({ length: devices }, (_, device) => ({ device, block })));
      const inOrder = places.toSorted(
        (a, b) => numberOf(a.device, a.block, devices) - numberOf(b.device, b.block, devices),
      );
      const whole = (x: TensorView) =>
        cat(
          inOrder.map(({ device, block }) => select(select(x, 0, device), 0, block)),
          1,
        );
      const [k, v] = [select(kv, 2, 0), select(kv, 2, 1)];
      const { output } = sdpa(whole(q), whole(k), whole(v), { causal: "topLeft" });
      const blocks = chunk(output, 2 * devices, 1).map((block) => unsqueeze(block, 0));
      const byDevice = Array.from({ length: devices }, (_, device) =>
        [0, 1].flatMap((block) => blocks[numberOf(device, block, devices)] ?? []),
      );
      f.output(reshape(cat(byDevice.flat()), q.extents));
      return f;
    },
  },
);

/** Which of the 2 n blocks of tokens a device's first or second one is. */
function numberOf(device: number, block: number, devices: number): number {
  return block === 0 ? device : 2 * devices - 1 - device;
}

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
