/** Fusions whose tensors keep their shapes and have Stream, and devices, on parts of their axes. All are annotated. */
import {
  add,
  broadcast,
  DeviceMesh,
  Fusion,
  linear,
  type LowerOptions,
  matmul,
  relu,
  reshape,
  set,
  sum,
  type TensorView,
} from "@braid-compiler/braid";

export interface ChunkedFusion {
  readonly name: string;
  readonly devices: number;
  readonly options?: LowerOptions;
  readonly build: () => Fusion;
}

type Body = (f: Fusion, devices: number) => readonly [results: readonly TensorView[], others: readonly TensorView[]];

/** Splits off `parts` parts of axis `axis` with Stream. */
function chunked<T extends TensorView>(tensor: T, axis: number, parts: number): T {
  tensor.outerSplit(axis, parts);
  tensor.axis(axis).parallelize("Stream");
  return tensor;
}

function shared<T extends TensorView>(tensor: T, axis: number, devices: number): T {
  tensor.outerSplit(axis, devices);
  tensor.axis(axis).parallelize("DIDx");
  return tensor;
}

/** Chunks of axis 0, each spread over the devices. `type` is that of the chunks. */
function spread<T extends TensorView>(tensor: T, parts: number, devices: number, type: "Stream" | "Serial"): T {
  tensor.outerSplit(0, parts);
  tensor.outerSplit(1, devices);
  tensor.axis(0).parallelize(type);
  tensor.axis(1).parallelize("DIDx");
  return tensor;
}

/** The same from shares of rows, annotated on inputs and on the first linear alone. */
export function gatheredMlp(rows: number, chunks: number): Body {
  return (f, devices) => {
    const x = f.input([rows, 4], "float");
    const up = f.input([6, 4], "float");
    const down = f.input([4, 6], "float");
    const a = linear(x, up);
    f.output(linear(relu(a), down));
    chunked(a, 0, chunks);
    return [[], [shared(x, 0, devices), shared(up, 0, devices), shared(down, 1, devices)]];
  };
}

/** Each row plus its sum, per chunk, between two linears. */
export function rowNorm(rows: number, chunks: number): Body {
  return (f, devices) => {
    const x = f.input([rows, 4], "float");
    const w = f.input([6, 4], "float");
    const a = linear(x, w);
    const rowSums = broadcast(sum(a, [1]), [false, true]);
    f.output(linear(relu(add(a, rowSums)), f.input([5, 6], "float")));
    chunked(a, 0, chunks);
    return [[], [shared(x, 0, devices), w]];
  };
}

/** Annotated on inputs, and with chunks on the first linear: the rest follows. */
const inputsAlone: Body = (f, devices) => {
  const x = f.input([8, 4], "float");
  const up = f.input([6, 4], "float");
  const down = f.input([4, 6], "float");
  const bias = f.input([4], "float");
  const a = linear(x, up);
  f.output(add(linear(relu(a), down, bias), x));
  chunked(a, 0, 4);
  return [[], [spread(x, 4, devices, "Serial"), shared(up, 0, devices), shared(down, 1, devices)]];
};

/** Rows gathered in chunks of one linear, which others read whole: in chunks of columns, and as one matmul. */
const readAgain: Body = (f, devices) => {
  const x = f.input([12, 4], "float");
  const [w, v, u] = [f.input([6, 4], "float"), f.input([8, 4], "float"), f.input([4, 5], "float")];
  const y = chunked(linear(x, w), 0, devices);
  return [
    [y, chunked(linear(x, v), 1, devices), matmul(x, u)],
    [shared(x, 0, devices), w, v, u],
  ];
};

/** The same of rows that are a view of an input. */
const viewReadAgain: Body = (f, devices) => {
  const x = f.input([1, 12, 4], "float");
  const rows = reshape(x, [12, 4]);
  const [w, u] = [f.input([6, 4], "float"), f.input([5, 4], "float")];
  return [
    [chunked(linear(rows, w), 0, devices), linear(rows, u)],
    [shared(x, 2, devices), w, u],
  ];
};

/** The first tensors that `body` returns are the outputs. All get the mesh of the devices. */
export function chunkedFusion(name: string, devices: number, body: Body, options: LowerOptions = {}): ChunkedFusion {
  const build = (): Fusion => {
    const f = new Fusion();
    const [results, others] = body(f, devices);
    for (const tensor of [...results, ...others]) tensor.setDeviceMesh(DeviceMesh.range(devices));
    for (const tensor of results) f.output(tensor);
    return f;
  };
  return { name, devices, build, options };
}

/** A chunked linear of the gathered rows of `x`. */
export function gathered(rows: number, chunks: number): Body {
  return (f, devices) => {
    const x = f.input([rows, 4], "float");
    const w = f.input([3, 4], "float");
    const g = set(x);
    const y = linear(g, w);
    shared(x, 0, devices);
    for (const tensor of [g, y]) chunked(tensor, 0, chunks);
    return [[y], [x, w, g]];
  };
}

/** All-gather, linear, activation, linear, reduce-scatter, bias and residual, by chunks of rows. */
export function fusedMlp(rows: number, chunks: number): Body {
  return (f, devices) => {
    const x = f.input([rows, 4], "float");
    const up = f.input([6, 4], "float");
    const down = f.input([4, 6], "float");
    const bias = f.input([4], "float");
    const g = set(x);
    const a = linear(g, up);
    const u = relu(a);
    const y = linear(u, down, bias);
    const z = add(y, x);
    spread(x, chunks, devices, "Serial");
    shared(up, 0, devices);
    shared(down, 1, devices);
    chunked(g, 0, chunks);
    for (const tensor of [a, u]) {
      shared(tensor, 1, devices);
      chunked(tensor, 0, chunks);
    }
    for (const tensor of [y, z]) spread(tensor, chunks, devices, "Stream");
    return [[z], [x, up, down, bias, g, a, u, y]];
  };
}

export const chunkedFusions: readonly ChunkedFusion[] = [
  chunkedFusion("linear by rows", 1, (f) => {
    const [x, w] = [f.input([8, 4], "float"), f.input([6, 4], "float")];
    return [[chunked(linear(x, w), 0, 2)], [x, w]];
  }),
  chunkedFusion("linear by columns", 1, (f) => {
    const [x, w] = [f.input([8, 4], "float"), f.input([6, 4], "float")];
    return [[chunked(linear(x, w), 1, 3)], [x, w]];
  }),
  chunkedFusion("linear, relu, linear", 1, (f) => {
    const [x, w, v] = [f.input([8, 4], "float"), f.input([6, 4], "float"), f.input([5, 6], "float")];
    const a = chunked(linear(x, w), 0, 2);
    const u = chunked(relu(a), 0, 2);
    return [[chunked(linear(u, v), 0, 2)], [x, w, v, a, u]];
  }),
  chunkedFusion("relu of an index of a whole axis", 1, (f) => {
    const [x, w, v] = [f.input([3, 8, 4], "float"), f.input([6, 4], "float"), f.input([5, 6], "float")];
    const a = linear(x, w);
    const u = relu(a);
    const y = linear(u, v);
    for (const tensor of [a, u, y]) tensor.axis(0).parallelize("Stream");
    return [[y], [x, w, v, a, u]];
  }),
  chunkedFusion("each row minus its sum", 1, (f) => {
    const x = f.input([8, 4], "float");
    const total = chunked(sum(x, [1]), 0, 2);
    const rows = chunked(broadcast(total, [false, true]), 0, 2);
    const y = chunked(add(x, rows), 0, 2);
    return [[chunked(relu(y), 0, 2)], [x, total, rows, y]];
  }),
  chunkedFusion(
    "accumulated chunks of the contracted axis",
    1,
    (f) => {
      const [x, w] = [f.input([8, 4], "float"), f.input([6, 4], "float")];
      return [[chunked(linear(x, w), 2, 2)], [x, w]];
    },
    { accumulate: true },
  ),
  chunkedFusion(
    "accumulated sum of rows",
    1,
    (f) => {
      const x = f.input([8, 4], "float");
      return [[chunked(sum(x, [0]), 0, 4)], [x]];
    },
    { accumulate: true },
  ),
  chunkedFusion("columns gathered by chunks of rows", 2, (f, devices) => {
    const x = f.input([8, 4], "float");
    const y = chunked(set(x), 0, 4);
    return [[y], [shared(x, 1, devices)]];
  }),
  chunkedFusion("spread chunks gathered", 2, (f, devices) => {
    const x = f.input([8, 4], "float");
    const y = chunked(set(x), 0, 4);
    return [[y], [spread(x, 4, devices, "Serial")]];
  }),
  chunkedFusion("chunks of shares", 2, (f, devices) => {
    const [x, w] = [f.input([8, 4], "float"), f.input([3, 4], "float")];
    const y = shared(linear(x, w), 0, devices);
    y.outerSplit(1, 2);
    y.axis(1).parallelize("Stream");
    return [[y], [shared(x, 0, devices), w]];
  }),
  chunkedFusion("reduce-scatter by spread chunks", 2, (f, devices) => {
    const [x, w] = [f.input([8, 4], "float"), f.input([6, 4], "float")];
    const y = spread(linear(x, w), 2, devices, "Stream");
    return [[y], [shared(x, 1, devices), shared(w, 1, devices)]];
  }),
  ...(["linear", "rotated", "broadcast"] as const).flatMap((p2p) =>
    [3, 6].map((chunks) => chunkedFusion(`ring, ${p2p}, ${chunks} chunks`, 3, gathered(12, chunks), { p2p })),
  ),
  ...(["get", "put"] as const).map((protocol) =>
    chunkedFusion(`ring, cuda ${protocol}`, 2, gathered(12, 4), { backend: "cuda", protocol }),
  ),
  ...(["linear", "rotated", "broadcast"] as const).map((p2p) =>
    chunkedFusion(`gathered once, read again, ${p2p}`, 3, readAgain, { p2p }),
  ),
  ...(["get", "put"] as const).map((protocol) =>
    chunkedFusion(`gathered once, read again, cuda ${protocol}`, 2, readAgain, { backend: "cuda", protocol }),
  ),
  chunkedFusion("a view, gathered once, read again", 2, viewReadAgain, { p2p: "broadcast" }),
  chunkedFusion("allreduce by chunks", 2, (f, devices) => {
    const [x, w] = [f.input([8, 4], "float"), f.input([6, 4], "float")];
    return [[chunked(linear(x, w), 0, 2)], [shared(x, 1, devices), shared(w, 1, devices)]];
  }),
  chunkedFusion("gathered by the linear", 2, (f, devices) => {
    const [x, w] = [f.input([8, 4], "float"), f.input([6, 4], "float")];
    return [[chunked(linear(x, w), 0, 4)], [shared(x, 0, devices), shared(w, 0, devices)]];
  }),
  chunkedFusion("fused MLP", 2, fusedMlp(8, 4)),
  ...[1, 7].map((rows) => chunkedFusion(`fused MLP of ${rows} rows`, 3, fusedMlp(rows, 4))),
  ...[2, 4, 8].map((chunks) => chunkedFusion(`7 rows gathered in ${chunks} chunks`, 2, gathered(7, chunks))),
  chunkedFusion("fused MLP, annotated on inputs", 2, inputsAlone),
];
