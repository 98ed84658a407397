/**
 * nvFuser's test_multidevice_lower_communication.cpp without loop splits: one resharding op per Fusion, on whole tensors, and
 * every row of the decision table between meshes that are not 0 .. n-1 in order.
 */
import { describe, expect, it } from "vitest";
import { amax, DeviceMesh, Fusion, lower, set, sum, type TensorView } from "braid";
import { expectOracle } from "../support/expect-oracle.ts";

interface Sharding {
  readonly mesh: readonly number[];
  /** The axis that DIDx shards; null for a replicated tensor. */
  readonly axis: number | null;
}

interface Case {
  readonly name: string;
  readonly shape: readonly number[];
  readonly op: (x: TensorView) => TensorView;
  readonly from: Sharding;
  readonly to: Sharding;
  readonly communication: string;
}

const mesh = (devices: number): readonly number[] => Array.from({ length: devices }, (_, i) => i);

const sameMesh = [1, 2, 3, 4, 8].flatMap((devices): readonly Case[] => {
  const all = mesh(devices);
  const of = (axis: number | null): Sharding => ({ mesh: all, axis });
  return [
    { name: "Allgather", shape: [devices, 4], op: set, from: of(0), to: of(null), communication: "Allgather" },
    {
      name: "Allgather of an inner axis",
      shape: [3, devices, 4],
      op: set,
      from: of(1),
      to: of(null),
      communication: "Allgather",
    },
    { name: "Scatter", shape: [devices, 4], op: set, from: of(null), to: of(0), communication: "Scatter" },
    { name: "AllToAll", shape: [devices, devices, 3], op: set, from: of(0), to: of(1), communication: "AllToAll" },
    {
      name: "Allreduce",
      shape: [devices, 4],
      op: (x) => sum(x, [0]),
      from: of(0),
      to: of(null),
      communication: "Allreduce",
    },
    {
      name: "Allreduce of the maximum",
      shape: [devices, 4],
      op: (x) => amax(x, [0]),
      from: of(0),
      to: of(null),
      communication: "Allreduce",
    },
    {
      name: "ReduceScatter_LogicalSplit",
      shape: [devices, devices, 4],
      op: (x) => sum(x, [0]),
      from: of(0),
      to: of(1),
      communication: "ReduceScatter",
    },
    {
      name: "ReduceScatter of an inner axis",
      shape: [devices, 3, devices],
      op: (x) => sum(x, [0]),
      from: of(0),
      to: of(2),
      communication: "ReduceScatter",
    },
  ];
});

const otherMesh: readonly Case[] = [
  {
    name: "Broadcast",
    shape: [3, 4],
    op: set,
    from: { mesh: [0], axis: null },
    to: { mesh: mesh(4), axis: null },
    communication: "Broadcast",
  },
  {
    name: "Broadcast from outside",
    shape: [3, 4],
    op: set,
    from: { mesh: [3], axis: null },
    to: { mesh: [2, 0], axis: null },
    communication: "Broadcast",
  },
  {
    name: "Gather",
    shape: [2, 4],
    op: set,
    from: { mesh: [0, 1], axis: 0 },
    to: { mesh: [0], axis: null },
    communication: "Gather",
  },
  {
    name: "Gather to two",
    shape: [2, 4],
    op: set,
    from: { mesh: [1, 2], axis: 0 },
    to: { mesh: [0, 2], axis: null },
    communication: "Gather",
  },
  {
    name: "Scatter",
    shape: [2, 4],
    op: set,
    from: { mesh: [0, 2], axis: null },
    to: { mesh: [1, 2], axis: 0 },
    communication: "Scatter",
  },
  {
    name: "Reduce",
    shape: [3, 4],
    op: (x) => sum(x, [0]),
    from: { mesh: [2, 0, 3], axis: 0 },
    to: { mesh: [0], axis: null },
    communication: "Reduce",
  },
  {
    name: "Reduce to outside",
    shape: [2, 4],
    op: (x) => amax(x, [0]),
    from: { mesh: [2, 3], axis: 0 },
    to: { mesh: [1], axis: null },
    communication: "Reduce",
  },
  {
    name: "SendRecv",
    shape: [2, 4],
    op: set,
    from: { mesh: [1, 2], axis: 0 },
    to: { mesh: [0, 1], axis: 0 },
    communication: "SendRecv",
  },
  {
    name: "SendRecv with a device that keeps its shard",
    shape: [2, 4],
    op: set,
    from: { mesh: [1, 2], axis: 0 },
    to: { mesh: [1, 0], axis: 0 },
    communication: "SendRecv",
  },
];

describe.each([...sameMesh, ...otherMesh])(
  "$name, shape $shape, $from.mesh to $to.mesh",
  ({ shape, op, from, to, communication }) => {
    const build = (): Fusion => {
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
    };
    const devices = Math.max(...from.mesh, ...to.mesh) + 1;

    it("is the expected communication", () => {
      const types = mesh(devices).flatMap((rank) =>
        lower(build(), { rank }).body.flatMap((statement) =>
          statement.kind === "Communication" ? [statement.type] : [],
        ),
      );
      expect(new Set(types)).toEqual(new Set([communication]));
    });

    it("gives the oracle's result", async () => {
      await expectOracle(build(), { devices });
    });
  },
);
