/**
 * Data parallel times tensor parallel, on a mesh of two dimensions: DATA groups of devices have different sequences, and
 * the devices of a group share the hidden features of each layer of an MLP. The gradients of the weights are sums over
 * the groups: an Allreduce each, between devices of equal place in their group.
 *
 *   npx braid run examples/transformer/data-parallel.ts --check
 */
import { add, DeviceMesh, Fusion, gelu, gradients, linear, program } from "@braid-compiler/braid";

export default program(
  { S: 2, DATA: 2, LAYERS: 2, B: 4, L: 8, H: 32, FFN: 64, DTYPE: "float" },
  ({ devices, params: { S, DATA, LAYERS, B, L, H, FFN, DTYPE } }) => {
    const f = new Fusion();
    const x = f.input([B, L, H], DTYPE).named("x");
    const dz = f.input([B, L, H], DTYPE).named("dz");
    const layers = Array.from({ length: LAYERS }, (_, i) => ({
      up: f.input([FFN, H], DTYPE).named(`up${i}`),
      down: f.input([H, FFN], DTYPE).named(`down${i}`),
    }));

    // A number of devices that DATA does not divide is one group.
    const groups = devices % DATA === 0 ? DATA : 1;
    const tensor = devices / groups;
    const group = (i: number): number[] => Array.from({ length: tensor }, (_, j) => i * tensor + j);
    const mesh = new DeviceMesh(Array.from({ length: groups }, (_, i) => group(i)));
    for (const input of f.inputs) input.setDeviceMesh(mesh);
    for (const sequences of [x, dz]) sequences.outerSplit(0, groups).parallelize("DIDy");
    for (const { up, down } of layers) {
      up.outerSplit(0, tensor).parallelize("DIDx");
      down.outerSplit(1, tensor).parallelize("DIDx");
    }

    const z = layers.reduce((y, { up, down }) => add(y, linear(gelu(linear(y, up), "tanh"), down)), x);
    z.outerSplit(1, S).parallelize("Stream");
    f.output(z);
    const wrt = layers.flatMap(({ up, down }) => [up, down]);
    for (const gradient of gradients(f, { of: [z], cotangents: [dz], wrt })) if (gradient !== null) f.output(gradient);
    return f;
  },
);
