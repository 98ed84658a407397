/**
 * Allgather + matmul in every layout of the back-propagation of matmul + reduce-scatter: which axis is gathered, which
 * operand is stored transposed, and whether a chunk is a device's or cut across all devices.
 */
import { DeviceMesh } from "../../src/ir/device-mesh.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { matmul, permute, sum } from "../../src/ir/api/ops.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";

export type GatheredAxis = "M" | "N" | "K";
/** As BLAS says it: T of an operand that is stored transposed, and permuted in front of the matmul. */
export type Transposition = "NN" | "NT" | "TN";

export interface Layout {
  readonly gathered: GatheredAxis;
  readonly operands: Transposition;
}

export const layouts: readonly Layout[] = (["M", "N", "K"] as const).flatMap((gathered) =>
  (["NN", "NT", "TN"] as const).map((operands): Layout => ({ gathered, operands })),
);

export interface LayoutSize {
  readonly devices: number;
  /**
   * Chunks along the Stream axis; null: one per device, which an exchange brings. Else each is gathered from all
   * devices.
   */
  readonly chunks: number | null;
  readonly dtype?: "float" | "bfloat16" | "half" | "double" | "int";
  /** The extents of the matmul; that of the gathered axis is a chunk's, or a device's part of a chunk. */
  readonly m?: number;
  readonly n?: number;
  readonly k?: number;
}

export function layoutFusion({ gathered, operands }: Layout, size: LayoutSize): Fusion {
  const { devices, chunks, dtype = "float", m = 3, n = 4, k = 5 } = size;
  const part = chunks === null ? 1 : devices;
  const rows = gathered === "M" ? m * part : m;
  const columns = gathered === "N" ? n * part : n;
  const depth = gathered === "K" ? k * part : k;
  const f = new Fusion();
  const all: TensorView[] = [];
  /**
   * An operand of `height` x `width`, and its batch axis of chunks if it has one; `sharded` is the position of the
   * gathered axis.
   */
  const operand = (height: number, width: number, isChunked: boolean, transposed: boolean, sharded: number | null) => {
    const batch = isChunked ? [chunks ?? devices] : [];
    const stored = f.input([...batch, ...(transposed ? [width, height] : [height, width])], dtype);
    const last = batch.length;
    const read = transposed ? permute(stored, [...batch.keys(), last + 1, last]) : stored;
    for (const [tensor, swapped] of new Map([
      [read, false],
      [stored, transposed],
    ])) {
      if (sharded !== null) shard(tensor, swapped ? 1 - sharded : sharded);
      all.push(tensor);
    }
    return read;
  };
  const shard = (tensor: TensorView, matrixAxis: number): void => {
    if (chunks === null) tensor.axis(0).parallelize("DIDx");
    else
      tensor
        .split(1 + matrixAxis, devices, { inner: false })
        .axis(1 + matrixAxis)
        .parallelize("DIDx");
  };
  // With a contracted chunk axis both operands have it; one of them is gathered.
  const gathersLeft = gathered === "M" || (gathered === "K" && operands !== "TN");
  const left = gathersLeft ? (gathered === "M" ? 0 : 1) : null;
  const right = gathersLeft ? null : gathered === "N" ? 1 : 0;
  const a = operand(rows, depth, gathered !== "N", operands === "TN", left);
  const b = operand(depth, columns, gathered !== "M", operands === "NT", right);
  const product = matmul(a, b);
  product.axis(0).parallelize("Stream");
  const c = gathered === "K" ? sum(product, [0]) : product;
  c.axis(0).parallelize("Stream");
  f.output(c);
  for (const tensor of [...all, product, c]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  return f;
}
