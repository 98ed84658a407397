/** The programs that calibration times. Each repeats one operation often enough to stand out. */
import { Fusion } from "../../ir/api/fusion.ts";
import { gradients } from "../../ir/api/gradients.ts";
import { linear, matmul, neg, scaledLinear, sdpa, set, sum } from "../../ir/api/ops.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import { DeviceMesh } from "../../ir/device-mesh.ts";
import { type DType, dtypes, isComputed } from "../../numerics/dtype.ts";
import type { GemmShape } from "../../simulate/interpolate.ts";

const dtype = "float";
const { bytes: elementBytes } = dtypes[dtype];
const tile = 16;
const vectorBytes = 16;

/** Every rank computes `count` GEMMs of [m, k] and [n, k], as in `linear`, scaled ones of floats of 8 bits. */
export function gemms(devices: number, { m, n, k }: GemmShape, of: DType, count = 1): Fusion {
  const f = new Fusion();
  const [a, b] = [f.input([m, k], of), f.input([n, k], of)];
  const scales = isComputed(of) ? [] : [f.input([], "float"), f.input([], "float")];
  const [ofA, ofB] = scales;
  const product = (): TensorView => (ofA && ofB ? scaledLinear(a, b, ofA, ofB) : linear(a, b));
  const results = Array.from({ length: count }, product);
  for (const tensor of [a, b, ...scales, ...results]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  for (const result of results) f.output(result);
  return f;
}

export interface AttentionProbe {
  readonly heads: number;
  /** Of a sequence. */
  readonly length: number;
  readonly headSize: number;
}

/** Every rank computes causal attention of one sequence, and its gradients too if `passes` is both. */
export function attention(
  devices: number,
  { heads, length, headSize }: AttentionProbe,
  of: DType,
  passes: "forward" | "both",
): Fusion {
  const f = new Fusion();
  const operand = (): TensorView => f.input([1, heads, length, headSize], of);
  const operands = [operand(), operand(), operand()] as const;
  const { output } = sdpa(...operands, { causal: "topLeft" });
  f.output(output);
  if (passes === "both") {
    const found = gradients(f, { of: [output], cotangents: [operand()], wrt: [...operands] });
    for (const each of found) if (each !== null) f.output(each);
  }
  for (const tensor of [...f.inputs, ...f.outputs]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  return f;
}

/** A chain of small GEMMs, each of the previous result. */
export function chain(devices: number, length: number): Fusion {
  return everywhere(devices, (f, on) => {
    const factor = on(f.input([tile, tile], dtype));
    let last = on(f.input([tile, tile], dtype));
    for (let i = 0; i < length; i++) last = on(matmul(last, factor));
    return last;
  });
}

/** Two small GEMMs on two streams, which the caller's stream waits for. */
export function fork(devices: number): Fusion {
  return everywhere(devices, (f, on) => {
    const result = on(matmul(on(f.input([2, tile, tile], dtype)), on(f.input([tile, tile], dtype))));
    result.axis(0).parallelize("Stream");
    return result;
  });
}

/** A kernel that reads and writes this many bytes in total. */
export function pointwise(devices: number, bytes: number): Fusion {
  return everywhere(devices, (f, on) => on(neg(on(f.input([bytes / elementBytes / 2], dtype)))));
}

/** A sum of one slot per device, which reads and writes about this many bytes in total. Rows are whole vector loads. */
export function slotSum(devices: number, bytes: number, of: DType): Fusion {
  const row = Math.max(1, Math.floor(bytes / (devices + 1) / vectorBytes)) * vectorBytes;
  return everywhere(devices, (f, on) => on(sum(on(f.input([devices, row / dtypes[of].bytes], of)), [0])));
}

/** A copy of this many bytes on every rank. */
export function localCopy(devices: number, bytes: number): Fusion {
  return everywhere(devices, (f, on) => on(set(on(f.input([bytes / elementBytes], dtype)))));
}

/** Every rank copies the shards of all others, one after the other. A shard has this many bytes. */
export function ring(devices: number, bytes: number): Fusion {
  return everywhere(devices, (f, on) => {
    const parts = on(f.input([devices, bytes / elementBytes], dtype));
    parts.axis(0).parallelize("DIDx");
    const all = on(set(parts));
    all.axis(0).parallelize("Stream");
    return all;
  });
}

/** Two devices give each other their halves of `count` tensors, each half of `bytes` / 2. */
export function exchanges(count: number, bytes: number): Fusion {
  const f = new Fusion();
  const on = (tensor: TensorView): TensorView => {
    tensor.setDeviceMesh(DeviceMesh.range(2));
    return tensor;
  };
  for (let i = 0; i < count; i++) {
    const halves = on(f.input([2, bytes / elementBytes / 2], dtype));
    halves.axis(0).parallelize("DIDx");
    const all = on(set(halves));
    all.axis(0).parallelize("Stream");
    f.output(all);
  }
  return f;
}

export const collectiveProbes = {
  /** `bytes` is the total over all ranks. */
  Allgather: (devices: number, bytes: number): Fusion =>
    everywhere(devices, (f, on) => {
      const parts = on(f.input([devices, Math.ceil(bytes / elementBytes / devices)], dtype));
      parts.axis(0).parallelize("DIDx");
      return on(set(parts));
    }),
  Allreduce: (devices: number, bytes: number): Fusion =>
    everywhere(devices, (f, on) => {
      const parts = on(f.input([devices, bytes / elementBytes], dtype));
      parts.axis(0).parallelize("DIDx");
      return on(sum(parts, [0]));
    }),
  ReduceScatter: (devices: number, bytes: number): Fusion =>
    everywhere(devices, (f, on) => {
      const parts = on(f.input([devices, devices, Math.ceil(bytes / elementBytes / devices)], dtype));
      parts.axis(0).parallelize("DIDx");
      const total = on(sum(parts, [0]));
      // Axis 0 is the reduced one; it stays in the tensor's domain, as in nvFuser.
      total.axis(1).parallelize("DIDx");
      return total;
    }),
  /** `bytes` is what each rank has. */
  AllToAll: (devices: number, bytes: number): Fusion =>
    everywhere(devices, (f, on) => {
      const parts = on(f.input([devices, devices, Math.ceil(bytes / elementBytes / devices)], dtype));
      parts.axis(0).parallelize("DIDx");
      const exchanged = on(set(parts));
      exchanged.axis(1).parallelize("DIDx");
      return exchanged;
    }),
} as const;

/** Rows in two chunks, gathered by the library and multiplied. The second chunk is gathered during the first GEMM. */
export function gatherAndMultiply(devices: number, { m, n, k }: GemmShape, of: DType): Fusion {
  return everywhere(devices, (f, on) => {
    const a = on(f.input([2, devices, rowsOf(m, 2 * devices), k], of));
    a.axis(1).parallelize("DIDx");
    const result = on(linear(a, on(f.input([n, k], of))));
    result.axis(0).parallelize("Stream");
    return result;
  });
}

/** Rows in chunks, multiplied and, if `isReduced`, reduced over the devices. */
export function multiplyAndReduce(
  devices: number,
  { m, n, k }: GemmShape,
  of: DType,
  chunks: number,
  isReduced = true,
): Fusion {
  return everywhere(devices, (f, on) => {
    const a = on(f.input([chunks, devices, m / chunks, k], of));
    const b = on(f.input([1, devices, k, n], of));
    const partial = on(matmul(a, b));
    const result = isReduced ? on(sum(partial, [1])) : partial;
    for (const tensor of [a, b, partial]) tensor.axis(1).parallelize("DIDx");
    for (const tensor of new Set([partial, result])) tensor.axis(0).parallelize("Stream");
    return result;
  });
}

/** Rows of every device, copied by the others one device after the other, with a GEMM per chunk. */
export function gatherAndMultiplyCopies(devices: number, { m, n, k }: GemmShape, of: DType): Fusion {
  return everywhere(devices, (f, on) => {
    const a = on(f.input([devices, rowsOf(m, devices), k], of));
    a.axis(0).parallelize("DIDx");
    const result = on(linear(a, on(f.input([n, k], of))));
    result.axis(0).parallelize("Stream");
    return result;
  });
}

function rowsOf(m: number, parts: number): number {
  return Math.max(1, Math.floor(m / parts));
}

type Place = (tensor: TensorView) => TensorView;

/** A Fusion with one output. `on` puts a tensor on all devices. */
function everywhere(devices: number, build: (f: Fusion, on: Place) => TensorView): Fusion {
  const f = new Fusion();
  const mesh = DeviceMesh.range(devices);
  const output = build(f, (tensor) => {
    tensor.setDeviceMesh(mesh);
    return tensor;
  });
  f.output(output);
  return f;
}
