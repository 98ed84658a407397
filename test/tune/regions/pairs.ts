/** Programs of several regions. */
import {
  add,
  DeviceMesh,
  type DType,
  Fusion,
  gelu,
  gradients,
  linear,
  matmul,
  relu,
  rmsNorm,
  set,
  sum,
  type TensorView,
} from "@braid-compiler/braid";
import { at } from "../../../src/support/invariant.ts";

/**
 * Pairs of a matmul that gathers its rows and a set that shards its result again. `columns`: of the input, and of the
 * result of each pair.
 */
export function pairs(devices: number, rows: number, columns: readonly number[], dtype: DType): Fusion {
  const f = new Fusion();
  const mesh = DeviceMesh.range(devices);
  const sharded = (tensor: TensorView): TensorView => {
    tensor.setDeviceMesh(mesh);
    tensor.axis(0).parallelize("DIDx");
    return tensor;
  };
  let x = sharded(f.input([devices, rows, at(columns, 0)], dtype));
  for (const [i, n] of columns.slice(1).entries()) {
    const w = f.input([n, at(columns, i)], dtype);
    const y = linear(x, w);
    for (const tensor of [w, y]) tensor.setDeviceMesh(mesh);
    y.axis(0).parallelize("Stream");
    x = sharded(set(y));
  }
  f.output(x);
  return f;
}

/** A matmul that gathers its rows with relu, and one whose partial results are sent to the devices that add them. */
export function gatherAndScatter(devices: number, rows: number, k: number): Fusion {
  const f = new Fusion();
  const [a, w] = [f.input([devices, rows, k], "float"), f.input([k, k], "float")];
  const gathered = linear(a, w);
  f.output(relu(gathered));
  const [b, v] = [f.input([devices, devices, rows, k], "float"), f.input([devices, 1, k, k], "float")];
  const partial = matmul(b, v);
  const added = sum(partial, [0]);
  f.output(added);
  for (const tensor of [a, w, gathered, b, v, partial, added]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  for (const tensor of [a, b, v]) tensor.axis(0).parallelize("DIDx");
  for (const tensor of [partial, added]) tensor.axis(1).parallelize("DIDx");
  gathered.axis(0).parallelize("Stream");
  b.axis(1).parallelize("Stream");
  partial.axis(0).parallelize("Stream");
  return f;
}

/**
 * A linear of sharded features that gathers its rows in two chunks, and its gradients: the weight's reads the same rows
 * as the linear, as one axis.
 */
export function gatheredAgain(devices: number, rows: number, k: number): Fusion {
  const f = new Fusion();
  const [m, n] = [2 * devices * rows, 2 * devices];
  const [x, w, dy] = [f.input([1, m, k]), f.input([n, k]), f.input([1, m, n])];
  for (const tensor of f.inputs) tensor.setDeviceMesh(DeviceMesh.range(devices));
  x.outerSplit(1, 2);
  x.outerSplit(2, devices).parallelize("DIDx");
  w.outerSplit(0, devices).parallelize("DIDx");
  dy.outerSplit(2, devices).parallelize("DIDx");
  const y = linear(x, w);
  y.outerSplit(1, 2).parallelize("Stream");
  f.output(y);
  for (const each of gradients(f, { of: [y], cotangents: [dy], wrt: [x, w] })) if (each !== null) f.output(each);
  return f;
}

/** MLPs, forward and backward, on two devices. The saved tensors of a layer cross from one pass to the other. */
export function mlpLayers(
  count: number,
  [rows, hidden, ffn]: readonly [number, number, number] = [8, 64, 128],
  dtype: DType = "float",
): Fusion {
  const f = new Fusion();
  const mesh = DeviceMesh.range(2);
  const [x, dz, norm] = [
    f.input([1, rows, hidden], dtype),
    f.input([1, rows, hidden], dtype),
    f.input([hidden], dtype),
  ];
  const weights = Array.from(
    { length: count },
    () => [f.input([ffn, hidden], dtype), f.input([hidden, ffn], dtype)] as const,
  );
  for (const tensor of f.inputs) tensor.setDeviceMesh(mesh);
  for (const cut of [x, dz]) cut.outerSplit(1, 2).parallelize("DIDx");
  for (const [up, down] of weights) {
    up.outerSplit(0, 2).parallelize("DIDx");
    down.outerSplit(1, 2).parallelize("DIDx");
  }
  const z = weights.reduce((y, [up, down]) => add(y, linear(gelu(linear(rmsNorm(y, norm), up), "tanh"), down)), x);
  f.output(z);
  for (const each of gradients(f, { of: [z], cotangents: [dz], wrt: [x, ...weights.flat()] }))
    if (each !== null) f.output(each);
  return f;
}
