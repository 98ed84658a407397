/**
 * A training step of fully sharded data parallelism (FSDP): every device has its own rows of x and a share of each
 * layer's weight. A host program written by hand. While a layer computes from one of two buffers, the weight of the next
 * one is gathered into the other, forward and backward. Gradients of weights are scattered from two more buffers under
 * the next layer's GEMMs.
 *
 *   npx braid run examples/transformer/fsdp.ts --check
 *
 * On each device x and dy have [M / devices, H], a weight and its gradient [H / devices, H]. The caller's stream
 * computes. The stream `gathers` posts each gather once the layer that read the buffer last is done.
 */
import {
  DeviceMesh,
  Fusion,
  gradients,
  HostProgramBuilder,
  linear,
  mul,
  program,
  reshape,
  sub,
  tanh,
} from "@braid-compiler/braid";

export default program(
  { LAYERS: 4, M: 48, H: 24 },
  ({ devices, params: { LAYERS, M, H } }) => {
    const h = new HostProgramBuilder();
    const mesh = DeviceMesh.range(devices);
    const sharded = { mesh, parallel: ["DIDx"] } as const;
    const [rows, share] = [M / devices, [devices, H / devices, H]];
    const [x, dy] = [h.input([devices, rows, H], sharded), h.input([devices, rows, H], sharded)];
    const weights = Array.from({ length: LAYERS }, () => h.input(share, sharded));
    const y = h.allocate(h.tensor([devices, rows, H], sharded));
    const found = weights.map(() => h.allocate(h.tensor(share, sharded)));
    for (const output of [y, ...found]) h.output(output);
    const gathered = inTurn(() => h.allocate(h.tensor(share, { mesh })));
    const partial = inTurn(() => h.allocate(h.tensor([H, H, { reduced: rows }], { mesh })));

    const [caller, gathers] = [h.getCurrentStream(), h.stream(0)];
    const gather = (step: number, weight = x) => {
      h.setCurrentStream(gathers);
      h.synchronize(caller);
      const posted = h.communication("Allgather", { input: weight, output: gathered(step) });
      h.setCurrentStream(caller);
      return posted;
    };
    const { forward, backward } = units(rows, H);

    // Forward in steps 0 to LAYERS - 1, then backward, which begins with the weight that is still there.
    const hidden = [h.select(x, 0, 0)];
    let coming = gather(0, weights[0]);
    for (let i = 0; i < LAYERS; i++) {
      const posted = coming;
      if (i + 1 < LAYERS) coming = gather(i + 1, weights[i + 1]);
      h.wait(posted);
      const z = h.linear(hidden[i] ?? x, h.reshape(gathered(i), [H, H]));
      const last = i + 1 === LAYERS ? [h.select(y, 0, 0)] : undefined;
      hidden.push(...h.postOnStream(forward, [z], last));
    }
    let g = h.select(dy, 0, 0);
    const scatters = [];
    for (let i = LAYERS - 1; i >= 0; i--) {
      const [step, posted] = [2 * LAYERS - 2 - i, coming];
      if (i > 1) coming = gather(step + 1, weights[i - 1]);
      const [dz = g] = h.postOnStream(backward, [g, hidden[i + 1] ?? y]);
      const before = scatters[LAYERS - 3 - i];
      if (before !== undefined) h.wait(before);
      h.matmul(h.permute(dz, [1, 0]), hidden[i] ?? x, { out: partial(step) });
      const input = h.reshape(partial(step), share, { out: h.tensor(share, { mesh }) });
      scatters.push(h.communication("ReduceScatter", { input, output: found[i] ?? x }));
      if (i === 0) break;
      if (i + 1 < LAYERS) h.wait(posted);
      g = h.matmul(dz, h.reshape(gathered(step), [H, H]));
    }
    for (const scatter of scatters.slice(-2)) h.wait(scatter);
    return h.build();
  },
  {
    reference: ({ devices, params: { LAYERS, M, H } }) => {
      const f = new Fusion();
      const [x, dy] = [f.input([devices, M / devices, H]), f.input([devices, M / devices, H])];
      const shares = Array.from({ length: LAYERS }, () => f.input([devices, H / devices, H]));
      const y = shares.reduce((hidden, share) => tanh(linear(hidden, reshape(share, [H, H]))), x);
      f.output(y);
      for (const each of gradients(f, { of: [y], cotangents: [dy], wrt: shares })) if (each !== null) f.output(each);
      return f;
    },
  },
);

/** Two of them, in turn. */
function inTurn<T>(make: () => T): (step: number) => T {
  const [even, odd] = [make(), make()];
  return (step) => (step % 2 === 0 ? even : odd);
}

/** y = tanh(z), and the gradient of z for that of y. */
function units(rows: number, H: number): { readonly forward: Fusion; readonly backward: Fusion } {
  const [forward, backward] = [new Fusion(), new Fusion()];
  forward.output(tanh(forward.input([rows, H])));
  const [g, y] = [backward.input([rows, H]), backward.input([rows, H])];
  backward.output(mul(g, sub(1, mul(y, y))));
  return { forward, backward };
}
