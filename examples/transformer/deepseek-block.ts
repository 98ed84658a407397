/**
 * A block of DeepSeek-V3, forward: latent attention (latent-attention.ts), then experts (moe-experts.ts). Devices share
 * the heads and the experts. Between the two, and outside, each has some of the tokens of every sequence: attention
 * gathers latents and scatters its sums over the tokens, in S chunks of sequences, and experts exchange rows.
 *
 *   npx braid run examples/transformer/deepseek-block.ts --check
 */
import { add, DeviceMesh, Fusion, permute, program, reshape, rmsNorm } from "@braid-compiler/braid";
import { latentAttention, latentWeights, shareHeads } from "./latent-attention.ts";
import { experts, expertWeights } from "./moe-experts.ts";

export default program(
  {
    S: 2,
    B: 2,
    L: 16,
    H: 32,
    HEADS: 8,
    Q: 16,
    KV: 8,
    D: 4,
    R: 2,
    FFN: 16,
    E: 8,
    TOP: 2,
    C: 8,
    GROUPS: 4,
    TOP_GROUPS: 2,
    SHARED: 1,
    DTYPE: "float",
  },
  ({ devices, params: { S: CHUNKS, DTYPE, ...given } }) => {
    const f = new Fusion();
    const { B, L, H } = given;
    const sizes = { ...given, S: devices, T: (B * L) / devices };
    const x = f.input([B, L, H], DTYPE).named("x");
    const [norm1, norm2] = [f.input([H], DTYPE).named("norm1"), f.input([H], DTYPE).named("norm2")];
    const [attention, moe] = [latentWeights(f, sizes, DTYPE), expertWeights(f, sizes, DTYPE)];
    const mesh = DeviceMesh.of({ ep: devices });
    for (const tensor of f.inputs) tensor.setDeviceMesh(mesh);
    x.outerSplit(1, devices).parallelize("ep");
    shareHeads(attention, devices);
    for (const weight of [moe.gate, moe.up, moe.down]) weight.outerSplit(0, devices).parallelize("ep");

    const { latents, y } = latentAttention(f, rmsNorm(x, norm1), attention, sizes);
    for (const chunked of [latents, y]) chunked.setDeviceMesh(mesh).outerSplit(0, CHUNKS).parallelize("Stream");
    y.outerSplit(2, devices).parallelize("ep");
    const r = add(x, y);
    const bySource = permute(reshape(rmsNorm(r, norm2), [B, devices, L / devices, H]), [1, 0, 2, 3]);
    const made = experts(f, reshape(bySource, [devices, sizes.T, H]), moe, mesh, sizes);
    const byToken = permute(reshape(made, [devices, B, L / devices, H]), [1, 0, 2, 3]);
    f.output(add(r, reshape(byToken, [B, L, H])).named("z"));
    return f;
  },
);
