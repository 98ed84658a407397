/**
 * nvFuser's test_multidevice_lower_communication.cpp without loop splits, as a table: one resharding op per Fusion, on
 * whole tensors, and every row of the decision table between meshes that are not 0 .. n-1 in order.
 */
import { Fusion } from "../../src/ir/api/fusion.ts";
import { amax, set, squeeze, sum } from "../../src/ir/api/ops.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import { DeviceMesh } from "../../src/ir/device-mesh.ts";

interface Sharding {
  readonly mesh: readonly number[];
  /** The axis that DIDx shards; null for a replicated tensor. */
  readonly axis: number | null;
}

export interface LoweredCommunication {
  readonly name: string;
  readonly shape: readonly number[];
  readonly op: (x: TensorView) => TensorView;
  readonly from: Sharding;
  readonly to: Sharding;
  /** The kind, and how many over all ranks. */
  readonly communications: string;
}

const mesh = (devices: number): readonly number[] => Array.from({ length: devices }, (_, i) => i);

const sameMesh = [1, 2, 3, 4, 8].flatMap((devices): readonly LoweredCommunication[] => {
  const all = mesh(devices);
  const of = (axis: number | null): Sharding => ({ mesh: all, axis });
  return [
    { name: "Allgather", shape: [devices, 4], op: set, from: of(0), to: of(null), communications: "Allgather 1" },
    {
      name: "Allgather of an inner axis",
      shape: [3, devices, 4],
      op: set,
      from: of(1),
      to: of(null),
      communications: "Allgather 1",
    },
    { name: "Scatter", shape: [devices, 4], op: set, from: of(null), to: of(0), communications: "Scatter 1" },
    { name: "AllToAll", shape: [devices, devices, 3], op: set, from: of(0), to: of(1), communications: "AllToAll 1" },
    {
      name: "Allreduce",
      shape: [devices, 4],
      op: (x) => sum(x, [0]),
      from: of(0),
      to: of(null),
      communications: "Allreduce 1",
    },
    {
      name: "Allreduce of the maximum",
      shape: [devices, 4],
      op: (x) => amax(x, [0]),
      from: of(0),
      to: of(null),
      communications: "Allreduce 1",
    },
    {
      name: "ReduceScatter_LogicalSplit",
      shape: [devices, devices, 4],
      op: (x) => sum(x, [0]),
      from: of(0),
      to: of(1),
      communications: "ReduceScatter 1",
    },
    {
      name: "ReduceScatter of an inner axis",
      shape: [devices, 3, devices],
      op: (x) => sum(x, [0]),
      from: of(0),
      to: of(2),
      communications: "ReduceScatter 1",
    },
  ];
});

type Meshes = readonly (readonly [readonly number[], readonly number[]])[];

const gathers: Meshes = [
  [[0, 1], [0]],
  [[0, 1], [1]],
  [
    [1, 2],
    [0, 2],
  ],
];

const scatters: Meshes = [
  [[0], [0, 1]],
  [[1], [0, 1]],
  [
    [0, 2],
    [1, 2],
  ],
];

const sends: Meshes = [
  [[0], [1]],
  [[1], [0]],
  [
    [1, 2],
    [0, 1],
  ],
  [
    [1, 2],
    [1, 0],
  ],
];

const otherMesh: readonly LoweredCommunication[] = [
  ...gathers.map(([from, to]) => ({
    name: "LowerGatherTest",
    shape: [from.length, 4],
    op: set,
    from: { mesh: from, axis: 0 },
    to: { mesh: to, axis: null },
    communications: `Gather ${to.length}`,
  })),
  ...scatters.map(([from, to]) => ({
    name: "LowerScatterTest",
    shape: [to.length, 4],
    op: set,
    from: { mesh: from, axis: null },
    to: { mesh: to, axis: 0 },
    communications: "Scatter 1",
  })),
  ...sends.map(([from, to]) => ({
    name: "LowerSendRecvTest",
    shape: [from.length, 4],
    op: set,
    from: { mesh: from, axis: 0 },
    to: { mesh: to, axis: 0 },
    communications: `SendRecv ${to.length}`,
  })),
  ...[1, 2, 3, 4, 8].flatMap((devices): readonly LoweredCommunication[] => [
    {
      name: "Broadcast",
      shape: [devices, 4],
      op: set,
      from: { mesh: [0], axis: null },
      to: { mesh: mesh(devices), axis: null },
      // One device has the tensor already.
      communications: devices === 1 ? "" : "Broadcast 1",
    },
    {
      name: "Reduce",
      shape: [devices, 4],
      op: (x) => sum(x, [0]),
      from: { mesh: mesh(devices), axis: 0 },
      to: { mesh: [0], axis: null },
      communications: devices === 1 ? "Allreduce 1" : "Reduce 1",
    },
  ]),
  {
    name: "Allreduce_Concrete, which removes the one row of one device",
    shape: [1, 4],
    op: (x) => squeeze(x, [0]),
    from: { mesh: [0], axis: 0 },
    to: { mesh: [0], axis: null },
    communications: "Allreduce 1",
  },
  {
    name: "Broadcast from outside",
    shape: [3, 4],
    op: set,
    from: { mesh: [3], axis: null },
    to: { mesh: [2, 0], axis: null },
    communications: "Broadcast 1",
  },
  {
    name: "Reduce of a mesh out of order",
    shape: [3, 4],
    op: (x) => sum(x, [0]),
    from: { mesh: [2, 0, 3], axis: 0 },
    to: { mesh: [0], axis: null },
    communications: "Reduce 1",
  },
  {
    name: "Reduce to outside",
    shape: [2, 4],
    op: (x) => amax(x, [0]),
    from: { mesh: [2, 3], axis: 0 },
    to: { mesh: [1], axis: null },
    communications: "Reduce 1",
  },
];

export const loweredCommunications: readonly LoweredCommunication[] = [...sameMesh, ...otherMesh];

/** How many devices the meshes name. */
export function devicesOf({ from, to }: LoweredCommunication): number {
  return Math.max(...from.mesh, ...to.mesh) + 1;
}

export function loweredFusion({ shape, op, from, to }: LoweredCommunication): Fusion {
  const f = new Fusion();
  const x = f.input(shape);
  const y = op(x);
  f.output(y);
  for (const [tensor, sharding] of [
    [x, from],
    [y, to],
  ] as const) {
    tensor.setDeviceMesh(new DeviceMesh(sharding.mesh));
    // An output's loop domain keeps the reduced axes, so axis numbers are the input's on both sides.
    if (sharding.axis !== null) tensor.axis(sharding.axis).parallelize("DIDx");
  }
  return f;
}
