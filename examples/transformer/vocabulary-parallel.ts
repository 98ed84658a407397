/**
 * Embedding and cross-entropy of a vocabulary that the devices share, forward and backward. Each device looks up the
 * tokens that its rows of the table have; a sum adds zeros for the others. Of the logits it has its own columns: only
 * the maximum, the sum of exponentials and the target's logit of each token are reduced. In the backward pass, the sum
 * of the gradients of x runs under the GEMM of the head's gradient.
 *
 *   npx braid run examples/transformer/vocabulary-parallel.ts --check
 *
 * On each device the table and the head are [V / devices, H], the logits [T, V / devices], in S chunks of tokens.
 */
import { crossEntropy, DeviceMesh, embedding, Fusion, gelu, gradients, linear, program } from "@braid-compiler/braid";

export default program(
  { S: 2, T: 48, V: 96, H: 32, DTYPE: "float", BACKWARD: 1 },
  ({ devices, params: { S, T, V, H, DTYPE, BACKWARD } }) => {
    const f = new Fusion();
    const tokens = f.input([T], "int64").named("tokens");
    const targets = f.input([T], "int64").named("targets");
    const table = f.input([V, H], DTYPE).named("table");
    const head = f.input([V, H], DTYPE).named("head");
    const mesh = DeviceMesh.range(devices);
    for (const tensor of f.inputs) tensor.setDeviceMesh(mesh);
    for (const rows of [table, head]) rows.outerSplit(0, devices).parallelize("DIDx");

    const x = embedding(table, tokens);
    const logits = linear(gelu(x), head);
    logits.outerSplit(0, S).parallelize("Stream");
    const loss = crossEntropy(logits, targets).named("loss");
    f.output(loss);
    if (BACKWARD) {
      for (const each of gradients(f, { of: [loss], wrt: [table, head] })) if (each !== null) f.output(each);
    }
    return f;
  },
);
