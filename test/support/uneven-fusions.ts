/** One op or communication each, over an axis of any size that is cut into as many parts as there are devices. */
import {
  amax,
  cast,
  DeviceMesh,
  Fusion,
  linear,
  matmul,
  mul,
  permute,
  relu,
  reshape,
  set,
  sum,
  type TensorView,
} from "@braid-compiler/braid";

/** Puts the tensors on the mesh and cuts the given axes, outermost first. */
function place(mesh: DeviceMesh, cuts: readonly (readonly [TensorView, number?])[], devices: number): void {
  for (const [tensor, axis] of cuts) {
    tensor.setDeviceMesh(mesh);
    if (axis !== undefined) tensor.outerSplit(axis, devices).parallelize("DIDx");
  }
}

type Build = (f: Fusion, size: number | null, devices: number) => void;

const onRange =
  (build: (f: Fusion, size: number | null) => readonly (readonly [TensorView, number?])[]): Build =>
  (f, size, devices) => {
    const cuts = build(f, size);
    f.output(at(cuts));
    place(DeviceMesh.range(devices), cuts, devices);
  };

/** The output is the last of the placed tensors. */
function at(cuts: readonly (readonly [TensorView, number?])[]): TensorView {
  const last = cuts.at(-1);
  if (last === undefined) throw new Error("a fusion places its output");
  return last[0];
}

export const unevenFusions: { readonly [name: string]: Build } = {
  elementwise: onRange((f, n) => {
    const x = f.input([n, 3]);
    const y = relu(x);
    const z = mul(y, x);
    return [
      [x, 0],
      [y, 0],
      [z, 0],
    ];
  }),
  "cast of columns": onRange((f, n) => {
    const x = f.input([3, n]);
    const y = cast(x, "double");
    return [
      [x, 1],
      [y, 1],
    ];
  }),
  "permute and reshape of other axes": onRange((f, n) => {
    const x = f.input([n, 2, 3]);
    const y = permute(x, [1, 2, 0]);
    const z = reshape(y, [6, y.extents[2] ?? 0]);
    return [
      [x, 0],
      [y, 2],
      [z, 1],
    ];
  }),
  "linear, rows": onRange((f, n) => {
    const [x, w, b] = [f.input([n, 4]), f.input([3, 4]), f.input([3])];
    const y = linear(x, w, b);
    return [[x, 0], [w], [b], [y, 0]];
  }),
  "linear, columns": onRange((f, n) => {
    const [x, w] = [f.input([3, 4]), f.input([n, 4])];
    const y = linear(x, w);
    return [[x], [w, 0], [y, 1]];
  }),
  "linear, contraction": onRange((f, n) => {
    const [x, w, b] = [f.input([4, n]), f.input([3, n]), f.input([3])];
    const y = linear(x, w, b);
    return [[x, 1], [w, 1], [b], [y]];
  }),
  "matmul, contraction to shares of rows": onRange((f, n) => {
    const [x, w] = [f.input([n, n]), f.input([n, 3])];
    const y = matmul(x, w);
    return [
      [x, 1],
      [w, 0],
      [y, 0],
    ];
  }),
  "sum over other axes": onRange((f, n) => {
    const x = f.input([4, n]);
    const y = sum(x, [0]);
    return [
      [x, 1],
      [y, 0],
    ];
  }),
  "sum over shares": onRange((f, n) => {
    const x = f.input([n, 4]);
    const y = sum(x, [0]);
    return [[x, 0], [y]];
  }),
  "sum over shares to shares": onRange((f, n) => {
    const x = f.input([n, 7]);
    const y = sum(x, [0]);
    return [
      [x, 0],
      [y, 0],
    ];
  }),
  Allgather: onRange((f, n) => {
    const x = f.input([3, n]);
    const y = set(x);
    return [[x, 1], [y]];
  }),
  Scatter: onRange((f, n) => {
    const x = f.input([n, 2]);
    const y = set(x);
    return [[x], [y, 0]];
  }),
  AllToAll: onRange((f, n) => {
    const x = f.input([n, 4]);
    const y = set(x);
    return [
      [x, 0],
      [y, 1],
    ];
  }),
  "Gather to another mesh": (f, n, devices) => {
    const x = f.input([n, 2]);
    const y = set(x);
    f.output(y);
    place(DeviceMesh.range(devices), [[x, 0]], devices);
    y.setDeviceMesh(new DeviceMesh([devices - 1]));
  },
  "max of all, empty shares included": (f, n, devices) => {
    // The axis of 3 has 3 elements on one device and none on others, as soon as there are more than 3 devices.
    const [x, y] = [f.input([n, 3]), f.input([n, 3])];
    const [a, b] = [amax(x, [1]), mul(x, y)];
    f.output(a);
    f.output(b);
    place(DeviceMesh.range(devices), [[x, 1], [y, 1], [a], [b, 1]], devices);
  },
};

/** On a mesh of two rows: rows over DIDy, columns over DIDx, gathered and contracted. */
export function onTwoDimensions(size: number, devices: number): Fusion {
  const mesh = new DeviceMesh([
    Array.from({ length: devices }, (_, i) => i),
    Array.from({ length: devices }, (_, i) => devices + i),
  ]);
  const f = new Fusion();
  const x = f.input([size, size + 1]);
  const [rows, columns, both] = [set(x), set(x), relu(x)];
  for (const tensor of [x, rows, columns, both]) tensor.setDeviceMesh(mesh);
  for (const tensor of [x, rows, both]) tensor.outerSplit(0, 2).parallelize("DIDy");
  for (const tensor of [x, both]) tensor.outerSplit(2, devices).parallelize("DIDx");
  columns.outerSplit(1, devices).parallelize("DIDx");
  for (const tensor of [rows, columns, both]) f.output(tensor);
  return f;
}

export function unevenFusion(name: string, size: number | null, devices: number): Fusion {
  const f = new Fusion();
  unevenFusions[name]?.(f, size, devices);
  return f;
}

/** Rows gathered chunk by chunk, two linears with an activation between them, and a sum over devices. */
export function unevenPipeline(rows: number, chunks: number, devices: number): Fusion {
  const f = new Fusion();
  const [x, v, w] = [f.input([rows, 3]), f.input([5, 3]), f.input([4, 5])];
  const gathered = set(x);
  const y = linear(relu(linear(gathered, v)), w);
  f.output(y);
  const mesh = DeviceMesh.range(devices);
  for (const tensor of [x, v, w, gathered, y]) tensor.setDeviceMesh(mesh);
  x.outerSplit(0, devices).parallelize("DIDx");
  v.outerSplit(0, devices).parallelize("DIDx");
  w.outerSplit(1, devices).parallelize("DIDx");
  y.outerSplit(0, chunks).parallelize("Stream");
  return f;
}
