/**
 * Programs over several GPUs: the forms of the host IR at sizes that the oracle evaluates in seconds, for any number of
 * devices that divides 24. Those of uneven parts take any number.
 */
import { DeviceMesh } from "../../src/ir/device-mesh.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { add, gelu, matmul, scaledLinear, set, sum } from "../../src/ir/api/ops.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import type { LoweringOptions } from "../../src/passes/options.ts";
import { layoutFusion, layouts } from "../support/layout-fusions.ts";
import { unevenFusion, unevenPipeline } from "../support/uneven-fusions.ts";

export interface WorldCase {
  readonly name: string;
  readonly build: (devices: number) => Fusion;
  readonly options: readonly Partial<LoweringOptions>[];
}

const nccl = { backend: "nccl" } as const;
const get = { backend: "cuda", protocol: "get" } as const;
const put = { backend: "cuda", protocol: "put" } as const;
const idioms = [nccl, get, put] as const;

function onMesh(devices: number, tensors: readonly TensorView[]): void {
  const mesh = DeviceMesh.range(devices);
  for (const tensor of tensors) tensor.setDeviceMesh(mesh);
}

function allgatherMatmul(devices: number, dtype: DType, chunks: number): Fusion {
  const f = new Fusion();
  const a = f.input([chunks, devices, 384 / devices, 256], dtype);
  const b = f.input([256, 128], dtype);
  const c = matmul(a, b);
  f.output(c);
  onMesh(devices, [a, b, c]);
  a.axis(1).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  return f;
}

/** The pipeline over devices: chunk i comes from device i by point-to-point. */
function ringMatmul(devices: number, dtype: DType): Fusion {
  const f = new Fusion();
  const a = f.input([devices, 768 / devices, 256], dtype);
  const b = f.input([256, 128], dtype);
  const c = matmul(a, b);
  f.output(c);
  onMesh(devices, [a, b, c]);
  a.axis(0).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  return f;
}

/** The ring in 8-bit floats with scales of blocks, which come with the rows. */
function ringOfBlocks(devices: number): Fusion {
  const f = new Fusion();
  const [a, b] = [f.input([devices, 384 / devices, 640], "float8_e4m3fn"), f.input([256, 640], "float8_e4m3fn")];
  const [ofA, ofB] = [f.input([devices, 384 / devices, 5], "float"), f.input([2, 5], "float")];
  const c = scaledLinear(a, b, ofA, ofB);
  f.output(c);
  onMesh(devices, [a, b, ofA, ofB, c]);
  for (const each of [a, ofA]) each.axis(0).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  return f;
}

/** Devices share the blocks along K. */
function blocksReduceScatter(devices: number): Fusion {
  const f = new Fusion();
  const [k, rows] = [256 * devices, 384];
  const [a, b] = [f.input([rows, k], "float8_e4m3fn"), f.input([256, k], "float8_e5m2")];
  const [ofA, ofB] = [f.input([rows, k / 128], "float"), f.input([256, k / 128], "float")];
  const c = scaledLinear(a, b, ofA, ofB);
  f.output(c);
  onMesh(devices, [a, b, ofA, ofB, c]);
  for (const each of [a, b, ofA, ofB]) each.outerSplit(1, devices).parallelize("DIDx");
  c.outerSplit(0, devices).parallelize("DIDx");
  return f;
}

function matmulReduceScatterByPeers(devices: number): Fusion {
  const f = new Fusion();
  const a = f.input([devices, devices, 192 / devices, 240 / devices], "float");
  const b = f.input([devices, 1, 240 / devices, 64], "float");
  const partial = matmul(a, b);
  const c = sum(partial, [0]);
  f.output(c);
  onMesh(devices, [a, b, partial, c]);
  a.axis(0).parallelize("DIDx");
  a.axis(1).parallelize("Stream");
  b.axis(0).parallelize("DIDx");
  partial.axis(0).parallelize("Stream");
  partial.axis(1).parallelize("DIDx");
  c.axis(1).parallelize("DIDx");
  return f;
}

type Sharding = (input: TensorView, output: TensorView) => void;

/** One tensor that changes its sharding: one collective. */
function reshard(devices: number, dtype: DType, shape: readonly number[], mark: Sharding): Fusion {
  const f = new Fusion();
  const x = f.input(shape, dtype);
  const y = set(x);
  f.output(y);
  onMesh(devices, [x, y]);
  mark(x, y);
  return f;
}

function reduced(devices: number, dtype: DType, scatter: boolean): Fusion {
  const f = new Fusion();
  const x = f.input([devices, devices, 40], dtype);
  const y = sum(x, [0]);
  f.output(y);
  onMesh(devices, [x, y]);
  x.axis(0).parallelize("DIDx");
  if (scatter) y.axis(1).parallelize("DIDx");
  return f;
}

/** Two matrix products with the hidden axis sharded, a sum over devices and a residual: tensor parallelism. */
function mlp(devices: number): Fusion {
  const f = new Fusion();
  const x = f.input([96, 64], "bfloat16");
  const up = f.input([devices, 64, 48], "bfloat16");
  const down = f.input([devices, 48, 64], "bfloat16");
  const product = matmul(x, up);
  const hidden = gelu(product);
  const partial = matmul(hidden, down);
  const total = sum(partial, [0]);
  const y = add(total, x);
  f.output(y);
  onMesh(devices, [x, up, product, hidden, down, partial, total, y]);
  for (const tensor of [up, product, hidden, down, partial]) tensor.axis(0).parallelize("DIDx");
  return f;
}

/** Of unevenFusions: parts that the devices do not divide. */
const unevenNames = [
  "linear, contraction",
  "matmul, contraction to shares of rows",
  "sum over shares to shares",
  "Allgather",
  "AllToAll",
];

export const worldCases: readonly WorldCase[] = [
  {
    name: "allgather",
    build: (d) => reshard(d, "float", [d, 70], (x) => x.axis(0).parallelize("DIDx")),
    options: idioms,
  },
  {
    name: "allgather of an inner axis (packed)",
    build: (d) => reshard(d, "half", [6, d, 33], (x) => x.axis(1).parallelize("DIDx")),
    options: idioms,
  },
  {
    name: "all to all",
    build: (d) =>
      reshard(d, "int", [d, d, 30], (x, y) => {
        x.axis(0).parallelize("DIDx");
        y.axis(1).parallelize("DIDx");
      }),
    options: [nccl],
  },
  { name: "allreduce of float", build: (d) => reduced(d, "float", false), options: [nccl, get] },
  { name: "allreduce of int64", build: (d) => reduced(d, "int64", false), options: [nccl] },
  { name: "reduce-scatter of bfloat16", build: (d) => reduced(d, "bfloat16", true), options: [nccl, get] },
  {
    name: "allgather + matmul in bfloat16, 4 chunks",
    build: (d) => allgatherMatmul(d, "bfloat16", 4),
    options: idioms,
  },
  { name: "allgather + matmul in float, 8 chunks", build: (d) => allgatherMatmul(d, "float", 8), options: [nccl] },
  { name: "ring allgather + matmul in bfloat16", build: (d) => ringMatmul(d, "bfloat16"), options: idioms },
  { name: "ring allgather + matmul in half", build: (d) => ringMatmul(d, "half"), options: [get] },
  { name: "ring allgather + matmul scaled by blocks", build: ringOfBlocks, options: idioms },
  { name: "matmul scaled by blocks + reduce-scatter", build: blocksReduceScatter, options: idioms },
  { name: "matmul + reduce-scatter by peers", build: matmulReduceScatterByPeers, options: idioms },
  ...layouts.map((layout): WorldCase => ({
    name: `${layout.gathered} gathered, operands ${layout.operands}, in bfloat16`,
    build: (devices) => layoutFusion(layout, { devices, chunks: null, dtype: "bfloat16", m: 64, n: 48, k: 40 }),
    options: idioms.map((idiom) => ({ ...idiom, accumulate: true })),
  })),
  {
    name: "contraction gathered in 4 chunks by a collective, in float",
    build: (devices) => layoutFusion({ gathered: "K", operands: "TN" }, { devices, chunks: 4, m: 64, n: 48, k: 16 }),
    options: [nccl, get].map((idiom) => ({ ...idiom, accumulate: true })),
  },
  { name: "MLP with a sharded hidden axis", build: mlp, options: [nccl, get] },
  ...unevenNames.flatMap((name) =>
    [0, -1, 1].map((more): WorldCase => ({
      name: `${name}, ${more === 0 ? "nothing" : more < 0 ? "a share empty" : "a share shorter"}`,
      build: (devices) => unevenFusion(name, more === 0 ? 0 : devices + more, devices),
      options: idioms,
    })),
  ),
  {
    name: "a pipeline of uneven chunks and shares",
    build: (devices) => unevenPipeline(4 * devices + 1, 3, devices),
    options: idioms,
  },
];
