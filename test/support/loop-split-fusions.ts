/** nvFuser's fusions with a DID type on a split axis: test_multidevice_lower_communication.cpp, items 5, 10, 13 and 16. */
import { Fusion } from "../../src/ir/api/fusion.ts";
import { set, sum } from "../../src/ir/api/ops.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import { onMesh } from "./on-mesh.ts";

/** Splits the devices off axis `axis` of the loop domain and shards them: nvFuser's outer_split and parallelize. */
export function shard(tensor: TensorView, axis: number, devices: number): TensorView {
  tensor.split(axis, devices, { inner: false }).axis(axis).parallelize("DIDx");
  return tensor;
}

/** Allgather_LoopSplit: one axis, memory in the order of the loop. */
export function allgatherLoopSplit(devices: number): Fusion {
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
export function reduceScatterLoopSplit(devices: number): Fusion {
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
export function reduceScatterAllgather(devices: number): Fusion {
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
export function allgatherColumns(devices: number): Fusion {
  const f = new Fusion();
  const x = f.input([3, devices * 2]);
  const y = set(x);
  f.output(y);
  onMesh([x, y], devices);
  shard(x, 1, devices).setAllocationDomain([1, 2, 0]);
  y.setAllocationDomain([1, 0]);
  return f;
}
