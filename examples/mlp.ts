/**
 * A tensor-parallel MLP with sequence parallelism, as in Megatron: the rows of X and of the residual are sharded, W1 by
 * rows and W2 by columns. One loop over chunks of rows gathers X, multiplies, applies gelu, multiplies and reduces. The
 * annotations are of the inputs and of one axis.
 *
 *   npx braid run examples/mlp.ts --check
 */
import { add, DeviceMesh, Fusion, gelu, linear, program } from "@braid-compiler/braid";

export default program({ S: 4, M: 256, K: 64, H: 256 }, ({ devices, params: { S, M, K, H } }) => {
  const f = new Fusion();
  const x = f.input([M, K], "float");
  const w1 = f.input([H, K], "float");
  const w2 = f.input([K, H], "float");
  const y = linear(gelu(linear(x, w1)), w2);
  f.output(add(x, y));

  const mesh = DeviceMesh.range(devices);
  for (const tensor of [x, w1, w2]) tensor.setDeviceMesh(mesh);
  x.outerSplit(0, S); // S chunks of rows,
  x.outerSplit(1, devices).parallelize("DIDx"); // each of them sharded
  w1.outerSplit(0, devices).parallelize("DIDx");
  w2.outerSplit(1, devices).parallelize("DIDx");
  y.outerSplit(0, S).parallelize("Stream");
  return f;
});
