/**
 * nvFuser's fusions with a DID type on a split axis: test_multidevice_lower_communication.cpp, items 5, 10 and 12 to
 * 18. Memory is contiguous here; where nvFuser's pass lays out a result along another axis, it has that as its
 * allocation domain.
 */
import { Fusion } from "../../src/ir/api/fusion.ts";
import { set, sum } from "../../src/ir/api/ops.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import type { Sizes } from "../../src/ir/sizes.ts";
import { onMesh } from "./on-mesh.ts";

/** Splits the devices off axis `axis` of the loop domain and shards them: nvFuser's outer_split and parallelize. */
export function shard(tensor: TensorView, axis: number, devices: number): TensorView {
  tensor.split(axis, devices, { inner: false }).axis(axis).parallelize("DIDx");
  return tensor;
}

/** Allgather_LoopSplit: one axis, memory in the order of the loop. */
function allgatherLoopSplit(devices: number): Fusion {
  const f = new Fusion();
  const x = f.input([devices * 3]);
  const y = set(x);
  f.output(y);
  onMesh([x, y], devices);
  shard(x, 0, devices).setAllocationDomain([0, 1]);
  y.split(0, devices, { inner: false }).setAllocationDomain([0, 1]);
  return f;
}

/** ReduceScatter: a local reduction and one communication. */
function reduceScatterLoopSplit(devices: number): Fusion {
  const f = new Fusion();
  const x = f.input([2 * devices, 3 * devices]);
  const y = sum(x, [1]);
  f.output(y);
  onMesh([x, y], devices);
  shard(x, 1, devices);
  y.split(1, devices, { inner: false }).axis(1).parallelize("DIDx");
  shard(y, 0, devices);
  return f;
}

/** ReduceScatter_Allgather. */
function reduceScatterAllgather(devices: number): Fusion {
  const f = new Fusion();
  const x = f.input([devices, 2 * devices, 3]);
  const y = sum(x, [0]);
  const z = set(y);
  f.output(z);
  onMesh([x, y, z], devices);
  x.axis(0).parallelize("DIDx");
  shard(y, 1, devices);
  return f;
}

/** Allgather_CompliantAllocation: column-major, sharded in columns. */
function allgatherColumns(devices: number): Fusion {
  const f = new Fusion();
  const x = f.input([3, devices * 2]);
  const y = set(x);
  f.output(y);
  onMesh([x, y], devices);
  shard(x, 1, devices).setAllocationDomain([1, 2, 0]);
  y.setAllocationDomain([1, 0]);
  return f;
}

/** ReduceScatter_StaticShape: the rows are the devices', and what is scattered has a size at run time only. */
function reduceScatterOpenColumns(devices: number): Fusion {
  const f = new Fusion();
  const x = f.input([devices, null]);
  const y = sum(x, [0]);
  f.output(y);
  onMesh([x, y], devices);
  x.axis(0).parallelize("DIDx");
  shard(y, 1, devices);
  return f;
}

/** ReduceScatterNoncontig: the axis that is scattered lies innermost in the output, or outermost. */
function reduceScatterColumns(devices: number, order: "row-major" | "column-major"): Fusion {
  const f = new Fusion();
  const x = f.input([5, devices * 3, devices * 7]);
  const y = sum(x, [1]);
  f.output(y);
  onMesh([x, y], devices);
  shard(x, 1, devices);
  y.split(1, devices, { inner: false }).axis(1).parallelize("DIDx");
  shard(y, 3, devices);
  if (order === "column-major") y.setAllocationDomain([3, 4, 0, 1, 2]);
  return f;
}

/** AllreduceNoncontig: the sharded axis is the reduced one, and lies innermost. */
function allreduceColumns(devices: number): Fusion {
  const f = new Fusion();
  const x = f.input([5, devices * 3]);
  const y = sum(x, [1]);
  f.output(y);
  onMesh([x, y], devices);
  shard(x, 1, devices);
  return f;
}

/** Allgather_NonCompliantAllocation: columns are gathered into a row-major output, which has to be unpacked. */
function allgatherUnpacked(devices: number): Fusion {
  const f = new Fusion();
  const x = f.input([5, devices * 3]);
  const y = set(x);
  f.output(y);
  onMesh([x, y], devices);
  shard(x, 1, devices);
  return f;
}

/**
 * Allgather_NoncontiguousOutput: row-major shards of columns become a column-major output; sizes are known at run time
 * only.
 */
function allgatherTransposed(devices: number): Fusion {
  const f = new Fusion();
  const x = f.input([null, null]);
  const y = set(x);
  f.output(y);
  onMesh([x, y], devices);
  shard(x, 1, devices).setAllocationDomain([1, 0, 2]);
  y.setAllocationDomain([1, 0]);
  return f;
}

export interface LoopSplitCollective {
  /** As nvFuser calls it. */
  readonly name: string;
  readonly build: (devices: number) => Fusion;
  /** Of extents that are open in the Fusion, by printed name. */
  readonly sizes: (devices: number) => Sizes;
  /** What the host programs compute and communicate, in order. */
  readonly kinds: readonly ("Reduction" | "Communication")[];
  /** Kinds of communications, and how many over all ranks. */
  readonly communications: string;
}

const noSizes = (): Sizes => new Map();

export const loopSplitCollectives: readonly LoopSplitCollective[] = [
  {
    name: "Allgather_LoopSplit",
    build: allgatherLoopSplit,
    sizes: noSizes,
    kinds: ["Communication"],
    communications: "Allgather 1",
  },
  {
    name: "ReduceScatter",
    build: reduceScatterLoopSplit,
    sizes: noSizes,
    kinds: ["Reduction", "Communication"],
    communications: "ReduceScatter 1",
  },
  {
    name: "ReduceScatter_StaticShape",
    build: reduceScatterOpenColumns,
    sizes: (devices) => new Map([["i2", 3 * devices]]),
    kinds: ["Communication"],
    communications: "ReduceScatter 1",
  },
  {
    name: "ReduceScatter_Allgather",
    build: reduceScatterAllgather,
    sizes: noSizes,
    kinds: ["Communication", "Communication"],
    communications: "ReduceScatter 1, Allgather 1",
  },
  ...(["row-major", "column-major"] as const).map((order) => ({
    name: `ReduceScatterNoncontig, ${order}`,
    build: (devices: number) => reduceScatterColumns(devices, order),
    sizes: noSizes,
    kinds: ["Reduction", "Communication"] as const,
    communications: "ReduceScatter 1",
  })),
  {
    name: "AllreduceNoncontig",
    build: allreduceColumns,
    sizes: noSizes,
    kinds: ["Reduction", "Communication"],
    communications: "Allreduce 1",
  },
  {
    name: "Allgather_CompliantAllocation",
    build: allgatherColumns,
    sizes: noSizes,
    kinds: ["Communication"],
    communications: "Allgather 1",
  },
  {
    name: "Allgather_NonCompliantAllocation",
    build: allgatherUnpacked,
    sizes: noSizes,
    kinds: ["Communication"],
    communications: "Allgather 1",
  },
  {
    name: "Allgather_NoncontiguousOutput",
    build: allgatherTransposed,
    sizes: (devices) =>
      new Map([
        ["i0", 2],
        ["i2", 3 * devices],
      ]),
    kinds: ["Communication"],
    communications: "Allgather 1",
  },
];
