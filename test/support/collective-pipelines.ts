/**
 * nvFuser's fusions of collectives in chunks: test_multidevice_stream_parallel_type.cpp, items 1 to 6. Chunks lie along
 * the outermost axis, which is the outputs' Stream axis.
 */
import { Fusion } from "../../src/ir/api/fusion.ts";
import { broadcast, matmul, set, sum } from "../../src/ir/api/ops.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import { onMesh } from "./on-mesh.ts";

/** Of the whole product but for `chunks`, which M is cut into. */
export interface PipelineSizes {
  readonly chunks: number;
  readonly m: number;
  readonly k: number;
  readonly n: number;
  readonly dtype?: DType;
}

export function allgatherChunks(devices: number): Fusion {
  const f = new Fusion();
  const x = f.input([4, devices]);
  const y = set(x);
  f.output(y);
  onMesh([x, y], devices);
  x.axis(1).parallelize("DIDx");
  y.axis(0).parallelize("Stream");
  return f;
}

export function allreduceChunks(devices: number): Fusion {
  const f = new Fusion();
  const x = f.input([4, devices, 8]);
  const y = sum(x, [1]);
  f.output(y);
  onMesh([x, y], devices);
  x.axis(1).parallelize("DIDx");
  y.axis(0).parallelize("Stream");
  return f;
}

export function reduceScatterChunks(devices: number): Fusion {
  const f = new Fusion();
  const x = f.input([4, devices, devices, 8]);
  const y = sum(x, [1]);
  f.output(y);
  onMesh([x, y], devices);
  x.axis(1).parallelize("DIDx");
  y.axis(0).parallelize("Stream");
  y.axis(2).parallelize("DIDx");
  return f;
}

/** AGMatmulTest.CollectiveBasedPipeline: [S, D, M/SD, K] by [K, N]. */
export function allgatherMatmulChunks(devices: number, { chunks, m, k, n, dtype }: PipelineSizes): Fusion {
  const f = new Fusion();
  const a = f.input([chunks, devices, m / (chunks * devices), k], dtype);
  const b = f.input([k, n], dtype);
  const c = matmul(a, b);
  f.output(c);
  onMesh([a, b, c], devices);
  a.axis(1).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  return f;
}

/** matmul_AR: [S, D, M/S, K/D] by [D, K/D, N], summed over the devices. */
export function matmulAllreduceChunks(devices: number, { chunks, m, k, n, dtype }: PipelineSizes): Fusion {
  const f = new Fusion();
  const a = f.input([chunks, devices, m / chunks, k / devices], dtype);
  const b = f.input([devices, k / devices, n], dtype);
  const partial = matmul(a, b);
  const c = sum(partial, [1]);
  f.output(c);
  onMesh([a, b, partial, c], devices);
  a.axis(1).parallelize("DIDx");
  b.axis(0).parallelize("DIDx");
  partial.axis(0).parallelize("Stream");
  partial.axis(1).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  return f;
}

/**
 * matmul_RS_through_bcast: [S, D, D, M/SD, K/D] by [D, K/D, N] as [1, D, 1, K/D, N], summed over the devices that share
 * K.
 */
export function matmulReduceScatterChunks(devices: number, { chunks, m, k, n, dtype }: PipelineSizes): Fusion {
  const f = new Fusion();
  const a = f.input([chunks, devices, devices, m / (chunks * devices), k / devices], dtype);
  const b = f.input([devices, k / devices, n], dtype);
  const weight = broadcast(b, [true, false, true, false, false]);
  const partial = matmul(a, weight);
  const c = sum(partial, [1]);
  f.output(c);
  onMesh([a, b, weight, partial, c], devices);
  a.axis(1).parallelize("DIDx");
  b.axis(0).parallelize("DIDx");
  weight.axis(1).parallelize("DIDx");
  partial.axis(0).parallelize("Stream");
  partial.axis(1).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  c.axis(2).parallelize("DIDx");
  return f;
}
