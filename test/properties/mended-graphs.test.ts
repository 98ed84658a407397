/** Graphs that random ones have shrunk to where something was wrong. Each is annotated on inputs and one Stream only. */
import { expect, it } from "vitest";
import {
  add,
  broadcast,
  cast,
  DeviceMesh,
  dynamicUpdate,
  Fusion,
  linear,
  minimum,
  mul,
  permute,
  relu,
  reshape,
  sum,
  tanh,
  type TensorView,
} from "@braid-compiler/braid";
import { shapeOf } from "../../src/ir/sizes.ts";
import { at } from "../../src/support/invariant.ts";
import type { GraphSetting } from "./annotated-graphs.ts";
import { checkFusion } from "./check-graph.ts";

interface Case {
  readonly name: string;
  readonly devices: number;
  readonly setting?: Partial<GraphSetting>;
  /** Adds ops and annotations; the results are the outputs. */
  readonly body: (f: Fusion, mesh: DeviceMesh) => readonly TensorView[];
}

const cases: readonly Case[] = [
  {
    name: "one chunk of shares of an axis of one element, in a unit whose inputs each device has whole",
    devices: 2,
    body: (f, mesh) => {
      const x = f.input([6, 4, 1]);
      const y = tanh(add(x, broadcast(sum(x, [2]), [false, false, true])));
      for (const tensor of [x, y]) tensor.setDeviceMesh(mesh);
      y.outerSplit(2, 2).parallelize("DIDx");
      y.outerSplit(3, 1).parallelize("Stream");
      return [y];
    },
  },
  {
    name: "shares of a reshaped axis of one element, which only repeats in the operand",
    devices: 2,
    body: (f, mesh) => {
      const x = f.input([6]);
      const y = reshape(tanh(broadcast(x, [true, false])), [1, 2, 3]);
      for (const tensor of [x, y]) tensor.setDeviceMesh(mesh);
      y.outerSplit(0, 2).parallelize("DIDx");
      return [y];
    },
  },
  {
    name: "a number of a tensor that is annotated nowhere",
    devices: 2,
    body: (f, mesh) => {
      const [x, rows] = [f.input([4, 6]), f.input([5])];
      x.setDeviceMesh(mesh);
      x.outerSplit(0, 2).parallelize("DIDx");
      return [mul(x, broadcast(tanh(sum(rows, [0])), [true, true]))];
    },
  },
  {
    name: "a permuted reshape in one chunk of shares, whose operand is shared along another axis",
    devices: 2,
    body: (f, mesh) => {
      const [x, w] = [f.input([13, 4, 13]), f.input([4, 52])];
      for (const tensor of [x, w]) tensor.setDeviceMesh(mesh);
      x.outerSplit(1, 2).parallelize("DIDx");
      w.outerSplit(0, 2).parallelize("DIDx");
      const columns = permute(reshape(x, [52, 13]), [1, 0]);
      columns.setDeviceMesh(mesh);
      columns.outerSplit(1, 1).parallelize("Stream");
      columns.outerSplit(2, 2).parallelize("DIDx");
      return [linear(columns, w)];
    },
  },
  {
    name: "chunks of the shares of an axis of one element, of operands that each device has whole",
    devices: 2,
    body: (f, mesh) => {
      const [x, y] = [f.input([4, 1]), f.input([4, 1])];
      const result = add(x, y);
      for (const tensor of [x, y, result]) tensor.setDeviceMesh(mesh);
      result.outerSplit(1, 2).parallelize("DIDx");
      result.outerSplit(2, 1).parallelize("Stream");
      return [result];
    },
  },
  {
    name: "one column that two devices share, added to one that each has whole, in one unit with its reduction",
    devices: 2,
    body: (f, mesh) => {
      const [x, w, bias] = [f.input([4, 4]), f.input([1, 4]), f.input([4, 1])];
      for (const tensor of [x, w]) tensor.setDeviceMesh(mesh);
      w.outerSplit(0, 2).parallelize("DIDx");
      const y = add(linear(x, w), bias);
      const result = mul(y, broadcast(sum(y, [1]), [false, true]));
      result.outerSplit(0, 2).parallelize("Stream");
      return [result];
    },
  },
  {
    name: "a sum over the rows that devices share, in one unit with what it sums",
    devices: 2,
    body: (f, mesh) => {
      const x = f.input([4, 4]);
      x.setDeviceMesh(mesh);
      x.outerSplit(0, 2).parallelize("DIDx");
      const y = tanh(x);
      const columns = relu(sum(y, [0]));
      columns.outerSplit(0, 2).parallelize("Stream");
      return [add(y, y), columns];
    },
  },
  {
    name: "a broadcast row whose one row is spread over the devices, resharded after the op",
    devices: 2,
    setting: { insertReshardingAfter: true },
    body: (f, mesh) => {
      const [x, row] = [f.input([4, 3]), f.input([1, 3])];
      for (const tensor of [x, row]) tensor.setDeviceMesh(mesh);
      row.outerSplit(0, 2).parallelize("DIDx");
      return [mul(x, row)];
    },
  },
  {
    name: "a broadcast row and its result, both spread over the devices along that axis",
    devices: 2,
    body: (f, mesh) => {
      const [x, row] = [f.input([4, 3]), f.input([1, 3])];
      for (const tensor of [x, row]) {
        tensor.setDeviceMesh(mesh);
        tensor.outerSplit(0, 2).parallelize("DIDx");
      }
      return [mul(x, row)];
    },
  },
  {
    name: "an all-to-all of one device to nested parts that do not divide the axis",
    devices: 1,
    setting: { insertReshardingAfter: true },
    body: (f, mesh) => {
      const x = f.input([1, 5]);
      const y = tanh(x);
      for (const tensor of [x, y]) tensor.setDeviceMesh(mesh);
      x.outerSplit(1, 1).parallelize("DIDx");
      y.outerSplit(0, 6).parallelize("Stream");
      y.outerSplit(1, 1).parallelize("DIDx");
      return [y];
    },
  },
  {
    name: "a contraction of operands whose unequal shares are of one index each",
    devices: 5,
    setting: { accumulate: true },
    body: (f, mesh) => {
      const [x, w] = [f.input([2, 4]), f.input([3, 4])];
      for (const tensor of [x, w]) tensor.setDeviceMesh(mesh);
      x.outerSplit(1, 5).parallelize("DIDx");
      w.outerSplit(1, 3).parallelize("Stream");
      w.outerSplit(2, 5).parallelize("DIDx");
      return [linear(x, w)];
    },
  },
  {
    name: "chunks of one index each, and an operand that has one index of the axis",
    devices: 3,
    setting: { insertReshardingAfter: true },
    body: (f, mesh) => {
      const [x, column, w] = [f.input([4, 4]), f.input([4, 1]), f.input([5, 4])];
      for (const tensor of [x, w]) tensor.setDeviceMesh(mesh);
      w.outerSplit(1, 7).parallelize("Stream");
      w.outerSplit(2, 3).parallelize("DIDx");
      return [linear(add(x, column), w)];
    },
  },
  {
    name: "a sum of half shares that propagation spreads, within the bounds of its roundings",
    devices: 8,
    body: (f, mesh) => {
      const x = f.input([8, 13]);
      x.setDeviceMesh(mesh);
      x.outerSplit(1, 8).parallelize("DIDx");
      return [sum(cast(x, "half"), [1])];
    },
  },
  ...[0, 1].map((kind): Case => ({
    name: `more chunks of the devices' shares than rows of a share, ${kind === 0 ? "summed" : "summed, then an activation"}`,
    devices: 4,
    body: (f) => {
      const [x, w] = [f.input([7, 4]), f.input([6, 4])];
      const grid = new DeviceMesh([
        [0, 1],
        [2, 3],
      ]);
      for (const tensor of [x, w]) {
        tensor.setDeviceMesh(grid);
        tensor.outerSplit(1, 2).parallelize("DIDy");
      }
      w.outerSplit(0, 2).parallelize("DIDx");
      w.outerSplit(1, 7).parallelize("Stream");
      const y = linear(x, w);
      return [kind === 0 ? y : add(tanh(relu(y)), f.input([7, 6]))];
    },
  })),
  {
    name: "a cast in more chunks of the devices' shares than a share has rows",
    devices: 3,
    body: (f, mesh) => {
      const x = f.input([12, 4]);
      const y = cast(x, "half");
      x.setDeviceMesh(mesh);
      x.outerSplit(0, 3).parallelize("DIDx");
      x.outerSplit(1, 7).parallelize("Stream");
      return [cast(relu(y), "float")];
    },
  },
  {
    name: "chunks of an axis that only the unit's output has, cut over devices too, without equal sizes",
    devices: 2,
    setting: { insertReshardingAfter: true },
    body: (f, mesh) => {
      const [x, start, part] = [f.input([2, 4]), f.input([], "int64"), f.input([1, 4])];
      for (const tensor of [x, start, part]) tensor.setDeviceMesh(mesh);
      part.outerSplit(1, 6).parallelize("Stream");
      part.outerSplit(2, 2).parallelize("DIDx");
      return [dynamicUpdate(x, 0, minimum(start, 1), part)];
    },
  },
];

async function requireRuns({ devices, setting, body }: Case): Promise<void> {
  const fusion = new Fusion();
  for (const result of body(fusion, DeviceMesh.range(devices))) fusion.output(result);
  const { inputs, tensors } = fusion.data();
  const shapes = inputs.map((id) => shapeOf(at(tensors, id), new Map()));
  expect(await checkFusion({ fusion, devices, shapes }, { streams: 2, ...setting }, 1)).toMatchObject({
    refused: null,
  });
}

it.each(cases)("$name", requireRuns);

it("run one chunk of a reshape whose devices' shares may not divide the new axis", async () => {
  const fusion = new Fusion();
  const [x, w] = [fusion.input([null, 4, 4]), fusion.input([4, 4])];
  for (const tensor of [x, w]) {
    tensor.setDeviceMesh(DeviceMesh.range(2));
    tensor.outerSplit(0, 2).parallelize("DIDx");
  }
  const y = linear(reshape(x, [-1, 4]), w);
  y.outerSplit(0, 1).parallelize("Stream");
  fusion.output(y);
  const shapes = [
    [4, 4, 4],
    [4, 4],
  ];
  const { refused } = await checkFusion({ fusion, devices: 2, shapes }, { streams: 1 }, 0);
  expect(refused).toBeNull();
});

it("run chunks of heads of which a device has fewer than chunks", async () => {
  const fusion = new Fusion();
  const x = fusion.input([4, 4]);
  const heads = reshape(x, [4, 2, 2]);
  fusion.output(heads);
  for (const tensor of [x, heads]) {
    tensor.setDeviceMesh(DeviceMesh.range(2));
    tensor.outerSplit(1, 2).parallelize("DIDx");
  }
  heads.outerSplit(2, 2).parallelize("Stream");
  const { refused } = await checkFusion({ fusion, devices: 2, shapes: [[4, 4]] }, { streams: 1 }, 0);
  expect(refused).toBeNull();
});

it("run chunks of a contracted axis of one element, whose extent one operand knows", async () => {
  const fusion = new Fusion();
  const [x, w] = [fusion.input([null, 4]), fusion.input([4, 1])];
  const y = linear(permute(x, [1, 0]), w);
  fusion.output(y);
  for (const tensor of [x, w]) {
    tensor.setDeviceMesh(DeviceMesh.range(2));
    tensor.outerSplit(0, 2).parallelize("DIDx");
  }
  y.outerSplit(2, 2).parallelize("Stream");
  const shapes = [
    [1, 4],
    [4, 1],
  ];
  const { refused } = await checkFusion({ fusion, devices: 2, shapes }, { streams: 1, accumulate: true }, 0);
  expect(refused).toBeNull();
});
