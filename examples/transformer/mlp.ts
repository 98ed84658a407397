/**
 * The MLP of a transformer, forward and backward: two linears with biases around gelu, and the residual. Tensor
 * parallel: each device has a part of the hidden features. With sequence parallelism (SP=1) the tokens are spread over
 * the devices outside of the linears.
 *
 *   npx braid run examples/transformer/mlp.ts --check
 */
import { add, DeviceMesh, Fusion, gelu, gradients, linear, program } from "@braid-compiler/braid";

export default program(
  { S: 2, B: 2, L: 16, H: 32, FFN: 64, DTYPE: "float", SP: 1, BACKWARD: 1 },
  ({ devices, params: { S, B, L, H, FFN, DTYPE, SP, BACKWARD } }) => {
    const f = new Fusion();
    const x = f.input([B, L, H], DTYPE).named("x");
    const wUp = f.input([FFN, H], DTYPE).named("w_up");
    const bUp = f.input([FFN], DTYPE).named("b_up");
    const wDown = f.input([H, FFN], DTYPE).named("w_down");
    const bDown = f.input([H], DTYPE).named("b_down");
    const dz = BACKWARD ? f.input([B, L, H], DTYPE).named("dz") : null;

    const mesh = DeviceMesh.range(devices);
    for (const tensor of f.inputs) tensor.setDeviceMesh(mesh);
    for (const columns of [wUp, bUp]) columns.outerSplit(0, devices).parallelize("DIDx");
    wDown.outerSplit(1, devices).parallelize("DIDx");
    if (SP) for (const tokens of [x, dz]) tokens?.outerSplit(1, devices).parallelize("DIDx");

    const z = add(x, linear(gelu(linear(x, wUp, bUp), "tanh"), wDown, bDown)).named("z");
    z.outerSplit(0, S).parallelize("Stream");
    f.output(z);
    if (dz !== null) {
      const found = gradients(f, { of: [z], cotangents: [dz], wrt: [x, wUp, bUp, wDown, bDown] });
      for (const gradient of found) if (gradient !== null) f.output(gradient);
    }
    return f;
  },
);
