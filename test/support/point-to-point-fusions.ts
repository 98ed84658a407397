/**
 * nvFuser's fusions of a matmul and point-to-point communication, and the communication alone:
 * test_multidevice_stream_parallel_type.cpp, items 7 to 11. Sizes are those of one device's part. In the last two, which
 * are ours, each device keeps a run of an axis instead of one index.
 */
import { Fusion } from "../../src/ir/api/fusion.ts";
import { linear, matmul, set, sum } from "../../src/ir/api/ops.ts";
import type { MemoryType } from "../../src/ir/domain.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import { onMesh } from "./on-mesh.ts";

export interface ProductSizes {
  readonly rows: number;
  readonly k: number;
  readonly n: number;
  readonly dtype?: DType;
}

/** AllgatherP2p; where a chunk is broadcast through peers' memory, the output is symmetric. */
export function allgather(devices: number, elements = 6, memory: MemoryType = "global"): Fusion {
  const f = new Fusion();
  const x = f.input([devices, elements]);
  const y = set(x);
  f.output(y);
  onMesh([x, y], devices);
  x.axis(0).parallelize("DIDx");
  y.setMemoryType(memory).axis(0).parallelize("Stream");
  return f;
}

/** AG_matmul_P2p: `k` is whole on every device. */
export function allgatherMatmul(
  devices: number,
  { rows, k, n, dtype }: ProductSizes = { rows: 3, k: 5, n: 4 },
): Fusion {
  const f = new Fusion();
  const a = f.input([devices, rows, k], dtype);
  const b = f.input([k, n], dtype);
  const c = matmul(a, b);
  f.output(c);
  onMesh([a, b, c], devices);
  a.axis(0).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  return f;
}

const scattered: ProductSizes = { rows: 4, k: 3, n: 2 };

/** ReduceScatterP2p: every chunk of partial sums goes to the device that keeps it; the sum is local, after the loop. */
export function reduceScatterP2p(devices: number, { rows, k, n, dtype }: ProductSizes = scattered): Fusion {
  const f = new Fusion();
  const a = f.input([devices, devices, rows, k], dtype);
  const b = f.input([devices, 1, k, n], dtype);
  const partial = matmul(a, b);
  const c = sum(partial, [0]);
  f.output(c);
  onMesh([a, b, partial, c], devices);
  a.axis(0).parallelize("DIDx");
  a.axis(1).parallelize("Stream");
  b.axis(0).parallelize("DIDx");
  partial.axis(0).parallelize("Stream");
  partial.axis(1).parallelize("DIDx");
  c.axis(1).parallelize("DIDx");
  return f;
}

/** ReduceScatterReduceBased: the reduced axis has Stream, and each iteration reduces to one device. */
export function reduceScatterReduceBased(devices: number, { rows, k, n, dtype }: ProductSizes = scattered): Fusion {
  const f = new Fusion();
  const a = f.input([devices, devices, rows, k], dtype);
  const b = f.input([devices, 1, k, n], dtype);
  const partial = matmul(a, b);
  const c = sum(partial, [0]);
  f.output(c);
  onMesh([a, b, partial, c], devices);
  a.axis(0).parallelize("DIDx");
  a.axis(1).parallelize("Stream");
  b.axis(0).parallelize("DIDx");
  partial.axis(0).parallelize("DIDx");
  partial.axis(1).parallelize("Stream");
  c.axis(0).parallelize("Stream");
  c.axis(1).parallelize("DIDx");
  return f;
}

const inRuns: Omit<ProductSizes, "rows"> = { k: 3, n: 2 };

/** ReduceScatterReduceBased where each device keeps a run of rows, the last device one row less than the others. */
export function reduceScatterRuns(devices: number, { k, n, dtype }: Omit<ProductSizes, "rows"> = inRuns): Fusion {
  const f = new Fusion();
  const x = f.input([devices, 3 * devices - 1, k], dtype);
  const w = f.input([n, k], dtype);
  const partial = linear(x, w);
  const y = sum(partial, [0]);
  f.output(y);
  onMesh([x, w, partial, y], devices);
  x.axis(0).parallelize("DIDx");
  partial.axis(0).parallelize("DIDx");
  partial.outerSplit(1, devices).parallelize("Stream");
  y.axis(0).parallelize("Stream");
  y.outerSplit(1, devices).parallelize("DIDx");
  return f;
}

/** An all-to-all that leaves each device a run of the columns of all shares, the last device one less. */
export function exchangeRuns(devices: number): Fusion {
  const f = new Fusion();
  const x = f.input([devices, 3, 3 * devices - 1]);
  const y = set(x);
  f.output(y);
  onMesh([x, y], devices);
  x.axis(0).parallelize("DIDx");
  y.axis(0).parallelize("Stream");
  y.outerSplit(2, devices).parallelize("DIDx");
  return f;
}
