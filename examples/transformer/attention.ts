/**
 * Causal self-attention of a transformer, forward and backward. Tensor parallel: each device has some of the heads. The
 * rows of the weight are ordered by head: q, k and v of head 0, then those of head 1. With sequence parallelism (SP=1)
 * the tokens are spread over the devices outside of the linears. The
 * forward pass runs in S chunks of sequences.
 *
 *   npx braid run examples/transformer/attention.ts --check
 */
import { DeviceMesh, Fusion, gradients, linear, permute, program, reshape, sdpa, split } from "@braid-compiler/braid";

export default program(
  { S: 2, B: 2, L: 16, H: 32, HEADS: 8, DTYPE: "float", SP: 1, BACKWARD: 1 },
  ({ devices, params: { S, B, L, H, HEADS, DTYPE, SP, BACKWARD } }) => {
    const f = new Fusion();
    const D = H / HEADS;
    const x = f.input([B, L, H], DTYPE).named("x");
    const wQKV = f.input([3 * H, H], DTYPE).named("w_qkv");
    const bQKV = f.input([3 * H], DTYPE).named("b_qkv");
    const wOut = f.input([H, H], DTYPE).named("w_out");
    const bOut = f.input([H], DTYPE).named("b_out");
    const dy = BACKWARD ? f.input([B, L, H], DTYPE).named("dy") : null;

    const mesh = DeviceMesh.range(devices);
    for (const tensor of f.inputs) tensor.setDeviceMesh(mesh);
    for (const heads of [wQKV, bQKV]) heads.outerSplit(0, devices).parallelize("DIDx");
    wOut.outerSplit(1, devices).parallelize("DIDx");
    if (SP) for (const tokens of [x, dy]) tokens?.outerSplit(1, devices).parallelize("DIDx");

    const heads = reshape(linear(x, wQKV, bQKV), [B, L, HEADS, 3 * D]);
    const [q, k, v] = split(permute(heads, [0, 2, 1, 3]), [D, D, D], -1);
    const y = linear(
      reshape(permute(sdpa(q, k, v, { causal: "topLeft" }).output, [0, 2, 1, 3]), [B, L, H]),
      wOut,
      bOut,
    ).named("y");
    y.outerSplit(0, S).parallelize("Stream");
    f.output(y);
    if (dy !== null) {
      const found = gradients(f, { of: [y], cotangents: [dy], wrt: [x, wQKV, bQKV, wOut, bOut] });
      for (const gradient of found) if (gradient !== null) f.output(gradient);
    }
    return f;
  },
);
