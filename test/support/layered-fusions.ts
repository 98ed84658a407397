/** Programs of any number of layers, each of which communicates beside its GEMMs. */
import { add, DeviceMesh, Fusion, linear, matmul, set, sum, type TensorView } from "@braid-compiler/braid";

/** The width of a layer: the same for all, or another for each. */
type Width = (layer: number) => number;

const equal: Width = () => 8;
const distinct: Width = (layer) => 8 + layer;

function on(tensor: TensorView, mesh: DeviceMesh, axis: number | null, type: "DIDx" | "Stream" = "DIDx"): TensorView {
  tensor.setDeviceMesh(mesh);
  if (axis !== null) tensor.axis(axis).parallelize(type);
  return tensor;
}

/** Per layer: rows gathered in a loop over the devices and multiplied; the result is sharded again. */
function gathers(layers: number, devices: number, width: Width): Fusion {
  const f = new Fusion();
  const mesh = DeviceMesh.range(devices);
  let x = on(f.input([devices, 2, width(0)], "float"), mesh, 0);
  for (let layer = 0; layer < layers; layer++) {
    const weight = on(f.input([width(layer), width(layer + 1)], "float"), mesh, null);
    x = on(set(on(matmul(x, weight), mesh, 0, "Stream")), mesh, 0);
  }
  f.output(x);
  return f;
}

/** Per layer: partial results by shares of K, in a loop over the devices that add them. */
function scatters(layers: number, devices: number): Fusion {
  const f = new Fusion();
  const mesh = DeviceMesh.range(devices);
  for (let layer = 0; layer < layers; layer++) {
    const a = on(on(f.input([devices, devices, 6, 4], "float"), mesh, 0), mesh, 1, "Stream");
    const b = on(f.input([devices, 1, 4, 5], "float"), mesh, 0);
    const partial = on(on(matmul(a, b), mesh, 0, "Stream"), mesh, 1);
    f.output(on(sum(partial, [0]), mesh, 1));
  }
  return f;
}

/** Per layer: two linears by shares of the columns between, in chunks of rows; rows are whole, or gathered and sharded. */
function blocks(layers: number, devices: number, rows: "whole" | "sharded"): Fusion {
  const f = new Fusion();
  const mesh = DeviceMesh.range(devices);
  const chunks = 4;
  let x = on(f.input([chunks * devices, 8], "float"), mesh, null);
  for (let layer = 0; layer < layers; layer++) {
    const up = on(f.input([2 * devices, 8], "float"), mesh, null);
    const down = on(f.input([8, 2 * devices], "float"), mesh, null);
    if (rows === "sharded") {
      x.outerSplit(0, chunks);
      x.outerSplit(1, devices).parallelize("DIDx");
    }
    up.outerSplit(0, devices).parallelize("DIDx");
    down.outerSplit(1, devices).parallelize("DIDx");
    const y = linear(linear(x, up), down);
    y.outerSplit(0, chunks).parallelize("Stream");
    x = add(x, y);
    if (rows === "sharded") x.setDeviceMesh(mesh);
  }
  f.output(x);
  return f;
}

export const layeredFusions = {
  gathers: (layers, devices) => gathers(layers, devices, equal),
  "gathers of all widths": (layers, devices) => gathers(layers, devices, distinct),
  scatters,
  blocks: (layers, devices) => blocks(layers, devices, "whole"),
  "sharded blocks": (layers, devices) => blocks(layers, devices, "sharded"),
} as const satisfies Readonly<Record<string, (layers: number, devices: number) => Fusion>>;
