/** Programs of many equal layers, and the same with few of them. */
import { describe, expect, it } from "vitest";
import { add, DeviceMesh, Fusion, gelu, gradients, linear, mul, type TensorView } from "@braid-compiler/braid";
import { placedData } from "../../../src/compile/lower.ts";
import { regionFusion } from "../../../src/compile/region-fusion.ts";
import type { FusionData } from "../../../src/ir/fusion-data.ts";
import { regionsOfFewer, withFewerLayers } from "../../../src/tune/regions/fewer-layers.ts";
import { findRegions } from "../../../src/tune/regions/split-regions.ts";
import { exampleFusion } from "../../support/example-program.ts";
import { mlpLayers } from "./pairs.ts";

/** Equal for Fusions that differ in numbers and names alone. */
function keyOf(data: FusionData): string {
  return regionFusion(data, data).key;
}

async function llama(layers: number, backward: 0 | 1): Promise<Fusion> {
  return exampleFusion("hosts/llama.ts", 2, { LAYERS: layers, BACKWARD: backward });
}

const models = {
  "MLPs, both passes": async (layers: number) => Promise.resolve(mlpLayers(layers)),
  "MLPs whose results are placed, both passes": async (layers: number) =>
    Promise.resolve(layersWith({ count: layers, differs: "nothing" })),
  "products with the input, both passes": async (layers: number) => Promise.resolve(productsWithInput(layers)),
  "MLPs between others": async (layers: number) => Promise.resolve(layersBetween(layers)),
  "Llama, forward": async (layers: number) => llama(layers, 0),
  "Llama, both passes": async (layers: number) => llama(layers, 1),
};

describe.each(Object.keys(models) as (keyof typeof models)[])("%s", (name) => {
  const count = 16;
  const build = models[name];

  it("is with fewer layers what it is when built with as many", async () => {
    const whole = await build(count);
    const layers = withFewerLayers(whole.data());
    expect(layers?.missing).toBeGreaterThan(10);
    const missing = layers?.missing ?? 0;
    for (const [part, left] of [
      [layers?.few, count - missing - 1],
      [layers?.more, count - missing],
    ] as const) {
      const [data, built] = [part?.data() ?? whole.data(), await build(left)];
      expect(keyOf(data)).toBe(keyOf(built.data()));
      // Cotangents lie like their primals.
      expect(keyOf(placedData({ data: () => data }, {}))).toBe(keyOf(placedData(built, {})));
    }
  });

  it("has the regions that those with fewer layers let expect", async () => {
    const whole = await build(count);
    const layers = withFewerLayers(whole.data());
    const found = layers && regionsOfFewer(layers, {});
    const keys = findRegions(whole, {})?.keys ?? [];
    // The backward pass of placed results is one region of all layers.
    expect(found === null).toBe(keys.length < count);
    if (found === null) return;
    const countIn = (own: readonly string[] = [], key: string): number => own.filter((each) => each === key).length;
    for (const key of new Set(keys)) {
      const [few, more] = [countIn(found.few.keys, key), countIn(found.more.keys, key)];
      expect(countIn(keys, key)).toBe(more + found.missing * (more - few));
    }
  });
});

/** The first reader of a weight and what makes its gradient are not in the same of the layers that are found. */
function productsWithInput(count: number): Fusion {
  const f = new Fusion();
  const [x, dz] = [f.input([8, 16]), f.input([8, 16])];
  const weights = Array.from({ length: count }, () => f.input([16, 16]));
  for (const tensor of f.inputs) tensor.setDeviceMesh(DeviceMesh.range(2));
  for (const weight of weights) weight.outerSplit(1, 2).parallelize("DIDx");
  const z = weights.reduce((y, weight) => mul(gelu(gelu(linear(y, weight), "tanh"), "tanh"), x), x);
  f.output(z);
  for (const each of gradients(f, { of: [z], cotangents: [dz], wrt: weights })) if (each !== null) f.output(each);
  return f;
}

/** MLPs of which the first and the last are lowered otherwise than those between them. */
function layersBetween(count: number): Fusion {
  const f = new Fusion();
  const mesh = DeviceMesh.range(2);
  const onMesh = (tensor: TensorView): TensorView => {
    tensor.setDeviceMesh(mesh);
    return tensor;
  };
  let z = gelu(linear(onMesh(f.input([1, 8, 64])), onMesh(f.input([64, 64]))));
  for (let layer = 0; layer < count; layer++) {
    const [up, down] = [onMesh(f.input([128, 64])), onMesh(f.input([64, 128]))];
    up.outerSplit(0, 2).parallelize("DIDx");
    down.outerSplit(1, 2).parallelize("DIDx");
    z = add(z, linear(gelu(linear(z, up)), down));
  }
  const head = onMesh(f.input([128, 64]));
  head.outerSplit(0, 2).parallelize("DIDx");
  f.output(linear(z, head));
  return f;
}

/** MLPs, of which number `odd` differs. */
interface Layers {
  readonly count: number;
  readonly odd?: number;
  readonly differs: "nothing" | "size" | "annotation" | "dtype" | "what it reads" | "output" | "gradient";
  readonly pass?: "forward" | "both";
}

function layersWith({ count, odd = count / 2, differs, pass = "both" }: Layers): Fusion {
  const f = new Fusion();
  const mesh = DeviceMesh.range(2);
  const dtype = "bfloat16";
  const onMesh = (tensor: TensorView): TensorView => {
    tensor.setDeviceMesh(mesh);
    return tensor;
  };
  const [x, dz] = [onMesh(f.input([8, 64], dtype)), onMesh(f.input([8, 64], dtype))];
  const wrt: TensorView[] = [];
  let [z, first]: [TensorView, TensorView | null] = [x, null];
  for (let layer = 0; layer < count; layer++) {
    const is = (difference: Layers["differs"]): boolean => layer === odd && differs === difference;
    const ffn = is("size") ? 256 : 128;
    const [up, down] = [onMesh(f.input([ffn, 64], dtype)), onMesh(f.input([64, ffn], dtype))];
    up.outerSplit(0, 2).parallelize("DIDx");
    down.outerSplit(1, 2).parallelize("DIDx");
    const hidden = gelu(linear(is("what it reads") && first !== null ? first : z, up), "tanh");
    if (is("annotation")) onMesh(hidden);
    if (is("output")) f.output(hidden);
    if (!is("gradient")) wrt.push(up);
    wrt.push(down);
    const y = linear(hidden, down);
    z = is("dtype") ? add(z, add(y, y)) : add(z, y);
    onMesh(z).outerSplit(0, 2).parallelize("DIDx");
    first ??= z;
  }
  f.output(z);
  if (pass === "forward") return f;
  for (const each of gradients(f, { of: [z], cotangents: [dz], wrt })) if (each !== null) f.output(each);
  return f;
}

describe("layers of which one differs", () => {
  it.each([
    ["size", "both"],
    ["annotation", "both"],
    ["dtype", "both"],
    ["what it reads", "forward"],
    ["output", "both"],
    ["gradient", "both"],
  ] as const)("in %s stay", (differs, pass) => {
    const found = (["nothing", differs] as const).map((each) =>
      withFewerLayers(layersWith({ count: 20, differs: each, pass }).data()),
    );
    expect(found[0]).not.toBeNull();
    expect(found[1]).toBeNull();
  });

  it("are few on both sides of it", () => {
    const layers = withFewerLayers(layersWith({ count: 40, odd: 20, differs: "size" }).data());
    const missing = layers?.missing ?? 0;
    expect(missing).toBeGreaterThan(12);
    const built = layersWith({ count: 40 - 2 * missing, odd: 20 - missing, differs: "size" });
    expect(keyOf(layers?.more.data() ?? built.data())).toBe(keyOf(built.data()));
  });
});

it("few layers stay", () => {
  expect(withFewerLayers(mlpLayers(8).data())).toBeNull();
});
