/** A program whose devices sum gradients along one dimension of a mesh, and partial results along the other. */
import { type DeviceMesh, Fusion, gradients, linear, relu } from "@braid-compiler/braid";

/** Both passes of an MLP whose features are cut along DIDx and whose rows along DIDy. */
export function trainedMlp(mesh: DeviceMesh): Fusion {
  const f = new Fusion();
  const [x, up, down, dy] = [f.input([8, 16]), f.input([32, 16]), f.input([16, 32]), f.input([8, 16])];
  const y = linear(relu(linear(x, up)), down);
  f.output(y);
  for (const gradient of gradients(f, { of: [y], cotangents: [dy], wrt: [x, up, down] })) {
    if (gradient !== null) f.output(gradient);
  }
  for (const tensor of [x, up, down, dy]) tensor.setDeviceMesh(mesh);
  for (const tensor of [x, dy]) tensor.outerSplit(0, 2).parallelize("DIDy");
  up.outerSplit(0, 4).parallelize("DIDx");
  down.outerSplit(1, 4).parallelize("DIDx");
  return f;
}
