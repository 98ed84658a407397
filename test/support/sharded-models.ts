/**
 * Models annotated as tensor-parallel training does, on inputs and without Stream: what `deviceLoops` puts in loops.
 * Neither rows nor hidden features need divide by the devices.
 */
import {
  add,
  DeviceMesh,
  type DType,
  Fusion,
  gelu,
  gradients,
  layerNorm,
  linear,
  matmul,
  permute,
  rmsNorm,
  set,
  swiglu,
  type TensorView,
} from "@braid-compiler/braid";

export interface ModelSizes {
  /** Of each group. */
  readonly devices: number;
  /** Null: known at run time. */
  readonly rows: number | null;
  readonly hidden: number;
  readonly dtype: DType;
  /** Whether the gradients of all inputs are outputs, too. */
  readonly backward?: boolean;
}

type Input = (extents: readonly (number | null)[], cut?: number) => TensorView;

const width = 6;

/** On the mesh; with `cut`, that axis is in runs over the devices of DIDx. */
function placed(tensor: TensorView, mesh: DeviceMesh, cut?: number): TensorView {
  tensor.setDeviceMesh(mesh);
  if (cut !== undefined) tensor.outerSplit(cut, mesh.size("DIDx")).parallelize("DIDx");
  return tensor;
}

/** x and the weights that `layer` asks for are the inputs. */
function model(
  { devices, rows, dtype, backward = false }: ModelSizes,
  layer: (x: TensorView, input: Input) => TensorView,
  { sequences = [], groups = 1 }: { readonly sequences?: readonly number[]; readonly groups?: number } = {},
): Fusion {
  const f = new Fusion();
  const mesh = groups === 1 ? DeviceMesh.range(devices) : DeviceMesh.ofShape([groups, devices]);
  const input: Input = (extents, cut) => placed(f.input(extents, dtype), mesh, cut);
  const activation = (): TensorView => {
    const tensor = input([...sequences, rows, width], sequences.length);
    if (groups > 1) tensor.outerSplit(0, groups).parallelize("DIDy");
    return tensor;
  };
  const z = layer(activation(), input);
  f.output(z);
  if (!backward) return f;
  const wrt = f.inputs;
  for (const gradient of gradients(f, { of: [z], cotangents: [activation()], wrt }))
    if (gradient !== null) f.output(gradient);
  return f;
}

/** x + down(gelu(up(x))): rows of x over the devices, as with sequence parallelism. */
function mlp(sizes: ModelSizes): Fusion {
  return model(sizes, (x, input) => {
    const [up, down] = [input([sizes.hidden, width], 0), input([width, sizes.hidden], 1)];
    return add(x, linear(gelu(linear(x, up)), down));
  });
}

/** Two column-parallel linears read one normalized activation. */
function gated(sizes: ModelSizes): Fusion {
  return model(sizes, (x, input) => {
    const h = rmsNorm(x, input([width]));
    const [gate, up] = [input([sizes.hidden, width], 0), input([sizes.hidden, width], 0)];
    return add(x, linear(swiglu(linear(h, gate), linear(h, up)), input([width, sizes.hidden], 1)));
  });
}

function halfBlock({ hidden }: ModelSizes): (x: TensorView, input: Input) => TensorView {
  return (x, input) => {
    const h = layerNorm(x, input([width]), input([width]));
    const activation = gelu(linear(h, input([hidden, width], 0), input([hidden], 0)), "tanh");
    return add(x, linear(activation, input([width, hidden], 1), input([width])));
  };
}

/** A norm and an MLP with biases. Each of two sequences has its tokens over the devices. */
function sequences(sizes: ModelSizes): Fusion {
  return model(sizes, halfBlock(sizes), { sequences: [2] });
}

/** The same on a mesh of two dimensions: three sequences over two groups, tokens over the devices of a group. */
function grid(sizes: ModelSizes): Fusion {
  return model(sizes, halfBlock(sizes), { sequences: [3], groups: 2 });
}

/** Rows of x, of both weights and of all results over the devices: weights are gathered, as in FSDP. */
function weightsGathered(sizes: ModelSizes): Fusion {
  return model(sizes, (x, input) => {
    const mesh = DeviceMesh.range(sizes.devices);
    const [up, down] = [input([sizes.hidden, width], 0), input([width, sizes.hidden], 0)];
    return add(x, placed(linear(gelu(placed(linear(x, up), mesh, 0)), down), mesh, 0));
  });
}

/** A Set that two linears read, and a matmul that contracts its rows. */
function readersOfOne({ devices, rows, hidden, dtype }: ModelSizes): Fusion {
  const f = new Fusion();
  const mesh = DeviceMesh.range(devices);
  const input: Input = (extents, cut) => placed(f.input(extents, dtype), mesh, cut);
  const [x, dy] = [input([rows, width], 0), input([rows, hidden], 1)];
  const whole = placed(set(x), mesh);
  for (const weight of [input([hidden, width], 0), input([hidden, width], 0)]) f.output(gelu(linear(whole, weight)));
  f.output(matmul(permute(dy, [1, 0]), whole));
  return f;
}

/** Partial results of two linears, added; each device keeps columns of the sum. */
function columnsKept({ devices, rows, hidden, dtype }: ModelSizes): Fusion {
  const f = new Fusion();
  const mesh = DeviceMesh.range(devices);
  const input: Input = (extents) => placed(f.input(extents, dtype), mesh, 1);
  const partial = (): TensorView => linear(input([rows, hidden]), input([width, hidden]));
  f.output(placed(add(partial(), partial()), mesh, 1));
  return f;
}

interface ShardedModel {
  readonly build: (sizes: ModelSizes) => Fusion;
  /** Of the mesh: it has this many times `devices`. */
  readonly groups: number;
}

const forward = (build: ShardedModel["build"], groups = 1): ShardedModel => ({ build, groups });
const backward = (build: ShardedModel["build"], groups = 1): ShardedModel => ({
  build: (sizes) => build({ ...sizes, backward: true }),
  groups,
});

export const shardedModels = {
  mlp: forward(mlp),
  gated: forward(gated),
  sequences: forward(sequences),
  grid: forward(grid, 2),
  "weights gathered": forward(weightsGathered),
  "readers of one": forward(readersOfOne),
  "columns kept": forward(columnsKept),
  "mlp, backward": backward(mlp),
  "gated, backward": backward(gated),
  "sequences, backward": backward(sequences),
  "grid, backward": backward(grid, 2),
  "weights gathered, backward": backward(weightsGathered),
} as const satisfies Record<string, ShardedModel>;
