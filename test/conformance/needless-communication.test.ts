/** What nvFuser sends and Braid does not: local reshapes and slices, merged gathers, exchanges in place of detours. */
import { describe, expect, it } from "vitest";
import {
  add,
  DeviceMesh,
  Fusion,
  linear,
  mul,
  permute,
  relu,
  reshape,
  set,
  type TensorView,
} from "@braid-compiler/braid";
import { collectivesOf } from "../support/collectives-of.ts";
import { expectOracle } from "../support/expect-oracle.ts";

interface Case {
  readonly name: string;
  readonly devices: number;
  readonly communications: string;
  readonly build: (f: Fusion, mesh: DeviceMesh) => readonly TensorView[];
  readonly mesh?: DeviceMesh;
}

const on = (mesh: DeviceMesh, ...tensors: readonly TensorView[]): void => {
  for (const tensor of tensors) tensor.setDeviceMesh(mesh);
};
const grid = new DeviceMesh([
  [0, 1],
  [2, 3],
]);

const cases: readonly Case[] = [
  {
    name: "a reshape that splits a sharded axis into heads",
    devices: 2,
    communications: "",
    build: (f, mesh) => {
      const x = f.input([3, 8]);
      on(mesh, x);
      x.outerSplit(1, 2).parallelize("DIDx");
      return [permute(relu(reshape(x, [3, 4, 2])), [1, 0, 2])];
    },
  },
  {
    name: "a reshape that merges heads",
    devices: 2,
    communications: "",
    build: (f, mesh) => {
      const x = f.input([3, 4, 2]);
      on(mesh, x);
      x.outerSplit(1, 2).parallelize("DIDx");
      return [relu(reshape(relu(x), [3, 8]))];
    },
  },
  {
    name: "a reshape of two groups on a 2-D mesh",
    devices: 4,
    mesh: grid,
    communications: "",
    build: (f, mesh) => {
      const x = f.input([6, 5, 4, 3]);
      on(mesh, x);
      x.outerSplit(0, 2).parallelize("DIDx");
      x.outerSplit(3, 2).parallelize("DIDy");
      return [relu(reshape(x, [30, 12]))];
    },
  },
  {
    name: "a whole axis of devices that is merged",
    devices: 2,
    communications: "",
    build: (f, mesh) => {
      const x = f.input([2, 3, 4]);
      on(mesh, x);
      x.axis(0).parallelize("DIDx");
      return [relu(reshape(x, [6, 4]))];
    },
  },
  {
    name: "heads that the devices do not divide",
    devices: 2,
    communications: "Allgather 1",
    build: (f, mesh) => {
      const x = f.input([3, 6]);
      on(mesh, x);
      x.outerSplit(1, 2).parallelize("DIDx");
      return [relu(reshape(x, [3, 3, 2]))];
    },
  },
  {
    name: "a replicated operand of a sharded one",
    devices: 2,
    communications: "",
    build: (f, mesh) => {
      const [x, y] = [f.input([8, 4], "bfloat16"), f.input([8, 4], "bfloat16")];
      on(mesh, x, y);
      x.outerSplit(0, 2).parallelize("DIDx");
      return [add(x, y)];
    },
  },
  {
    name: "a replicated tensor that is sharded on a 2-D mesh",
    devices: 4,
    mesh: grid,
    communications: "",
    build: (f, mesh) => {
      const x = f.input([4, 6]);
      const y = set(x);
      on(mesh, x, y);
      y.outerSplit(0, 2).parallelize("DIDy");
      y.outerSplit(2, 2).parallelize("DIDx");
      return [y];
    },
  },
  {
    name: "rows that lie in several places",
    devices: 2,
    communications: "",
    build: (f, mesh) => {
      const x = f.input([12, 3]);
      const y = set(x);
      on(mesh, x, y);
      y.outerSplit(0, 3);
      y.outerSplit(1, 2).parallelize("DIDx");
      return [y, relu(y)];
    },
  },
  {
    name: "rows that the devices do not divide",
    devices: 3,
    communications: "",
    build: (f, mesh) => {
      const [x, y] = [f.input([4, 3]), f.input([4, 3])];
      on(mesh, x, y);
      x.outerSplit(0, 3).parallelize("DIDx");
      return [mul(x, y)];
    },
  },
  {
    name: "two linears of one sharded activation",
    devices: 2,
    communications: "Allgather 1",
    build: (f, mesh) => {
      const [x, gate, up] = [f.input([8, 4]), f.input([6, 4]), f.input([6, 4])];
      on(mesh, x, gate, up);
      for (const tensor of [x, gate, up]) tensor.outerSplit(0, 2).parallelize("DIDx");
      return [mul(relu(linear(x, gate)), linear(x, up))];
    },
  },
  {
    name: "a gather that is scattered along another axis",
    devices: 2,
    communications: "AllToAll 1",
    build: (f, mesh) => {
      const x = f.input([8, 4]);
      const whole = set(x);
      const y = set(whole);
      on(mesh, x, whole, y);
      x.outerSplit(0, 2).parallelize("DIDx");
      y.outerSplit(1, 2).parallelize("DIDx");
      return [y];
    },
  },
  {
    name: "a gather that is scattered as it was",
    devices: 2,
    communications: "",
    build: (f, mesh) => {
      const x = f.input([8, 4]);
      const whole = set(x);
      const y = set(whole);
      on(mesh, x, whole, y);
      x.outerSplit(0, 2).parallelize("DIDx");
      y.outerSplit(0, 2).parallelize("DIDx");
      return [y];
    },
  },
  {
    name: "a gather that something else reads, too",
    devices: 2,
    communications: "Allgather 1",
    build: (f, mesh) => {
      const x = f.input([8, 4]);
      const whole = set(x);
      const y = set(whole);
      on(mesh, x, whole, y);
      x.outerSplit(0, 2).parallelize("DIDx");
      y.outerSplit(1, 2).parallelize("DIDx");
      return [y, relu(whole)];
    },
  },
  {
    name: "a contraction over devices with a bias, which is added once",
    devices: 2,
    communications: "Allreduce 1",
    build: (f, mesh) => {
      const [x, w, bias] = [f.input([4, 6]), f.input([3, 6]), f.input([3])];
      on(mesh, x, w, bias);
      x.outerSplit(1, 2).parallelize("DIDx");
      w.outerSplit(1, 2).parallelize("DIDx");
      return [linear(x, w, bias)];
    },
  },
];

describe.each(cases)("$name", ({ build, devices, communications, mesh = DeviceMesh.range(devices) }) => {
  const make = (): Fusion => {
    const f = new Fusion();
    for (const output of build(f, mesh)) f.output(output);
    return f;
  };

  it(`sends ${communications || "nothing"}`, () => {
    expect(collectivesOf(make(), devices)).toBe(communications);
  });

  it("gives the oracle's result", async () => {
    await expectOracle(make(), { devices });
  });
});
