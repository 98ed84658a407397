/**
 * Programs annotated on their inputs and one axis of chunks: uneven parts, chunks of shares, units in loops, local
 * reshapes and slices.
 */
import { DeviceMesh } from "../../../src/ir/device-mesh.ts";
import { Fusion } from "../../../src/ir/api/fusion.ts";
import { add, linear, matmul, mul, permute, relu, reshape, sum } from "../../../src/ir/api/ops.ts";
import type { TensorView } from "../../../src/ir/api/tensor-view.ts";
import type { DType } from "../../../src/numerics/dtype.ts";
import { cuda, fusionCase, get, nccl, put, type ReferenceCase } from "./reference-case.ts";

type Build = (f: Fusion, devices: number, mesh: DeviceMesh) => readonly TensorView[];

function annotated(build: Build): (devices: number) => Fusion {
  return (devices) => {
    const f = new Fusion();
    for (const output of build(f, devices, DeviceMesh.range(devices))) f.output(output);
    return f;
  };
}

const on = (mesh: DeviceMesh, ...tensors: readonly TensorView[]): void => {
  for (const tensor of tensors) tensor.setDeviceMesh(mesh);
};

/** Rows of x over the devices, columns of w, and the rows of the result in chunks. */
function gatheredLinear(rows: number, chunks: (devices: number) => number, dtype: DType = "bfloat16"): Build {
  return (f, devices, mesh) => {
    const [x, w] = [f.input([rows, 96], dtype), f.input([40, 96], dtype)];
    const y = linear(x, w);
    on(mesh, x, w);
    x.outerSplit(0, devices).parallelize("DIDx");
    w.outerSplit(0, devices).parallelize("DIDx");
    y.outerSplit(0, chunks(devices)).parallelize("Stream");
    return [y];
  };
}

/** Each chunk of rows is spread over the devices; one loop from the gather to the residual. */
function mlp(rows: number, chunks: number, spread: boolean): Build {
  return (f, devices, mesh) => {
    const [x, w1, w2, bias] = [f.input([rows, 48]), f.input([64, 48]), f.input([48, 64]), f.input([48])];
    const up = linear(x, w1);
    const z = add(x, linear(relu(up), w2, bias));
    on(mesh, x, w1, w2, bias);
    if (spread) {
      x.outerSplit(0, chunks);
      x.outerSplit(1, devices).parallelize("DIDx");
    }
    w1.outerSplit(0, devices).parallelize("DIDx");
    w2.outerSplit(1, devices).parallelize("DIDx");
    up.outerSplit(0, chunks).parallelize("Stream");
    return [z];
  };
}

const contraction: Build = (f, devices, mesh) => {
  const [x, w, bias] = [f.input([37, 50]), f.input([29, 50]), f.input([29])];
  on(mesh, x, w, bias);
  x.outerSplit(1, devices).parallelize("DIDx");
  w.outerSplit(1, devices).parallelize("DIDx");
  return [linear(x, w, bias)];
};

const scatteredContraction: Build = (f, devices, mesh) => {
  const [x, w, residual] = [f.input([37, 50]), f.input([29, 50]), f.input([37, 29])];
  on(mesh, x, w, residual);
  x.outerSplit(1, devices).parallelize("DIDx");
  w.outerSplit(1, devices).parallelize("DIDx");
  residual.outerSplit(0, devices).parallelize("DIDx");
  return [add(residual, linear(x, w))];
};

const heads: Build = (f, devices, mesh) => {
  const [x, w] = [f.input([20, 32], "bfloat16"), f.input([64, 32], "bfloat16")];
  on(mesh, x, w);
  w.outerSplit(0, devices).parallelize("DIDx");
  const split = permute(reshape(linear(x, w), [20, 8, 8]), [1, 0, 2]);
  return [reshape(permute(relu(split), [1, 0, 2]), [20, 64])];
};

const exchanged: Build = (f, devices, mesh) => {
  const [x, y] = [f.input([13, 22]), f.input([13, 22])];
  on(mesh, x, y);
  x.outerSplit(0, devices).parallelize("DIDx");
  y.outerSplit(1, devices).parallelize("DIDx");
  return [mul(x, y)];
};

const weightGradient: Build = (f, devices, mesh) => {
  const [grad, x] = [f.input([30, 24]), f.input([30, 16])];
  on(mesh, grad, x);
  grad.outerSplit(1, devices).parallelize("DIDx");
  x.outerSplit(0, devices).parallelize("DIDx");
  return [matmul(permute(grad, [1, 0]), x), sum(grad, [0])];
};

const empty: Build = (f, devices, mesh) => {
  const [x, w] = [f.input([1, 6]), f.input([3, 6])];
  on(mesh, x, w);
  x.outerSplit(0, devices).parallelize("DIDx");
  w.outerSplit(0, devices).parallelize("DIDx");
  return [relu(linear(x, w))];
};

const idioms = [nccl, get, put];
const collectives = [nccl, cuda];

export const annotatedCases: readonly ReferenceCase[] = [
  fusionCase("1000 rows in 8 chunks", idioms, annotated(gatheredLinear(1000, () => 8))),
  fusionCase("a ring of uneven shares", idioms, annotated(gatheredLinear(61, (devices) => devices))),
  fusionCase("a ring of shares in parts", idioms, annotated(gatheredLinear(96, (devices) => 4 * devices))),
  fusionCase("more chunks than rows", collectives, annotated(gatheredLinear(3, () => 5, "float"))),
  fusionCase("an MLP in one loop", collectives, annotated(mlp(64, 4, true))),
  fusionCase("an MLP in one loop, uneven chunks", collectives, annotated(mlp(61, 4, true))),
  fusionCase("an MLP of replicated rows", collectives, annotated(mlp(61, 3, false))),
  fusionCase("an uneven contraction", collectives, annotated(contraction)),
  fusionCase("an uneven reduce-scatter", collectives, annotated(scatteredContraction)),
  fusionCase("heads", collectives, annotated(heads)),
  fusionCase("an uneven exchange", collectives, annotated(exchanged)),
  fusionCase("a weight gradient", collectives, annotated(weightGradient)),
  fusionCase("empty shares", collectives, annotated(empty)),
];
