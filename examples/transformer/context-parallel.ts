/**
 * Self-attention with context and tensor parallelism on a mesh [cp, tp], forward and backward: each device has a part of
 * the tokens and some of the heads. Keys and values of its heads are gathered along cp, and the output is summed along
 * tp. In S chunks of sequences, keys of one chunk are gathered while attention to another one runs.
 *
 *   npx braid run examples/transformer/context-parallel.ts --check
 *
 * On each device x and y are [B, L / cp, H], q is [B, HEADS / tp, L / cp, H / HEADS], k and v have all L tokens.
 */
import {
  DeviceMesh,
  Fusion,
  ge,
  gradients,
  iota,
  linear,
  permute,
  program,
  reshape,
  sdpa,
  set,
  split,
  unsqueeze,
} from "@braid-compiler/braid";

export default program(
  { S: 2, TP: 2, B: 2, L: 16, H: 32, HEADS: 8, CAUSAL: 1, DTYPE: "float", BACKWARD: 1 },
  ({ devices, params: { S, TP, B, L, H, HEADS, CAUSAL, DTYPE, BACKWARD } }) => {
    const f = new Fusion();
    const D = H / HEADS;
    const x = f.input([B, L, H], DTYPE).named("x");
    const wQ = f.input([H, H], DTYPE).named("w_q");
    const wKV = f.input([2 * H, H], DTYPE).named("w_kv");
    const wOut = f.input([H, H], DTYPE).named("w_out");
    const dy = BACKWARD ? f.input([B, L, H], DTYPE).named("dy") : null;

    // A number of devices that TP does not divide is all for the context.
    const tp = devices % TP === 0 ? TP : 1;
    const cp = devices / tp;
    const mesh = DeviceMesh.of({ cp, tp });
    for (const tensor of f.inputs) tensor.setDeviceMesh(mesh);
    for (const tokens of [x, dy]) tokens?.outerSplit(1, cp).parallelize("cp");
    for (const heads of [wQ, wKV]) heads.outerSplit(0, tp).parallelize("tp");
    wOut.outerSplit(1, tp).parallelize("tp");

    const q = permute(reshape(linear(x, wQ), [B, L, HEADS, D]), [0, 2, 1, 3]);
    const kv = set(permute(reshape(linear(x, wKV), [B, L, HEADS, 2 * D]), [0, 2, 1, 3])).named("kv");
    kv.setDeviceMesh(mesh).outerSplit(1, tp).parallelize("tp");
    const [k, v] = split(kv, [D, D], -1);
    // Rows of queries on a device do not know where they are in a causal mask; of a mask they read their own rows.
    const position = iota(f, L);
    const mask = { mask: ge(unsqueeze(position, 1), unsqueeze(position, 0)) };
    const { output } = sdpa(q, k, v, CAUSAL ? mask : {});
    const y = linear(reshape(permute(output, [0, 2, 1, 3]), [B, L, H]), wOut).named("y");
    for (const chunked of [kv, y]) chunked.outerSplit(0, S).parallelize("Stream");
    f.output(y);
    if (dy !== null) {
      for (const each of gradients(f, { of: [y], cotangents: [dy], wrt: [x, wQ, wKV, wOut] }))
        if (each !== null) f.output(each);
    }
    return f;
  },
);
