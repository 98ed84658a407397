/**
 * Layers of Llama, cut over hosts and devices: each host has some of the sequences, and its devices have a part of the
 * heads and of the hidden features, and between the linears a part of the tokens (sequence parallelism). With BACKWARD=1
 * also the backward pass; the hosts add up their gradients of the weights.
 *
 *   npx braid run examples/hosts/llama.ts --check
 */
import {
  add,
  cast,
  cos,
  DeviceMesh,
  exp,
  Fusion,
  gradients,
  iota,
  linear,
  mul,
  permute,
  program,
  reshape,
  rmsNorm,
  rope,
  sdpa,
  sin,
  split,
  swiglu,
  type TensorView,
  unsqueeze,
} from "@braid-compiler/braid";

export default program(
  { LAYERS: 2, B: 2, L: 16, H: 32, HEADS: 8, GROUPS: 4, FFN: 64, DTYPE: "float", BACKWARD: 0 },
  ({ devices, hosts, params: { LAYERS, B, L, H, HEADS, GROUPS, FFN, DTYPE, BACKWARD } }) => {
    const f = new Fusion();
    const [D, R, local] = [H / HEADS, HEADS / GROUPS, devices / hosts];
    const mesh = DeviceMesh.ofShape([hosts, local]);
    const input = (name: string, shape: readonly number[]): TensorView => {
      const tensor = f.input(shape, DTYPE).named(name);
      tensor.setDeviceMesh(mesh);
      return tensor;
    };
    const weight = (name: string, shape: readonly number[], cut: 0 | 1): TensorView => {
      const tensor = input(name, shape);
      tensor.outerSplit(cut, local).parallelize("DIDx");
      return tensor;
    };
    const activations = (name: string): TensorView => {
      const tensor = input(name, [B, L, H]);
      tensor.outerSplit(0, hosts).parallelize("DIDy");
      tensor.outerSplit(2, local).parallelize("DIDx");
      return tensor;
    };
    const x = activations("x");
    const [c, s] = angles(f, L, D);
    const wrt = [x];
    let z = x;
    for (let layer = 0; layer < LAYERS; layer++) {
      const norm1 = input(`norm1_${layer}`, [H]);
      const wQKV = weight(`w_qkv_${layer}`, [GROUPS * (R + 2) * D, H], 0);
      const wOut = weight(`w_out_${layer}`, [H, HEADS * D], 1);
      const norm2 = input(`norm2_${layer}`, [H]);
      const wGate = weight(`w_gate_${layer}`, [FFN, H], 0);
      const wUp = weight(`w_up_${layer}`, [FFN, H], 0);
      const wDown = weight(`w_down_${layer}`, [H, FFN], 1);
      wrt.push(norm1, wQKV, wOut, norm2, wGate, wUp, wDown);
      const groups = reshape(linear(rmsNorm(z, norm1), wQKV), [B, L, GROUPS, R + 2, D]);
      const [q, k, v] = split(permute(groups, [0, 2, 3, 1, 4]), [R, 1, 1], 2);
      const heads = sdpa(rope(q, c, s), rope(k, c, s), v, { causal: "topLeft" }).output;
      const r = add(z, linear(reshape(permute(heads, [0, 3, 1, 2, 4]), [B, L, HEADS * D]), wOut));
      const n = rmsNorm(r, norm2);
      z = add(r, linear(swiglu(linear(n, wGate), linear(n, wUp)), wDown));
    }
    f.output(z.named("z"));
    if (BACKWARD) {
      const found = gradients(f, { of: [z], cotangents: [activations("dz")], wrt });
      for (const gradient of found) if (gradient !== null) f.output(gradient);
    }
    return f;
  },
);

/** The cosines and sines of position i times 10000^(-2 j / D), as [L, D / 2]. */
function angles(f: Fusion, L: number, D: number): readonly [TensorView, TensorView] {
  const [position, pair] = [cast(iota(f, L), "float"), cast(iota(f, D / 2), "float")];
  const frequency = exp(mul(pair, (-2 * Math.log(10000)) / D));
  const angle = mul(unsqueeze(position, 1), unsqueeze(frequency, 0));
  return [cos(angle), sin(angle)];
}
