/**
 * Chunks and devices on one axis, with sizes that do not divide: graphs that random ones have shrunk to where something
 * was wrong. Each is annotated on inputs and one Stream only.
 */
import { expect, it } from "vitest";
import {
  add,
  amax,
  broadcast,
  compile,
  DeviceMesh,
  div,
  exp,
  Fusion,
  linear,
  matmul,
  mul,
  permute,
  relu,
  simulate,
  slice,
  sub,
  tanh,
} from "@braid-compiler/braid";
import type { ParallelType, TensorView } from "@braid-compiler/braid";
import { sizesFromShapes } from "../../src/ir/sizes.ts";
import { at } from "../../src/support/invariant.ts";
import { roundProfile } from "../simulate/profile.ts";
import type { GraphSetting } from "./annotated-graphs.ts";
import { checkFusion } from "./check-graph.ts";

interface Case {
  readonly name: string;
  readonly mesh: readonly number[] | readonly (readonly number[])[];
  /** Of the inputs, in order. */
  readonly shapes: readonly (readonly number[])[];
  readonly setting?: Partial<GraphSetting>;
  /** Adds ops and annotations; the results are the outputs. */
  readonly body: (f: Fusion, mesh: DeviceMesh) => readonly TensorView[];
}

/** Splits an axis into levels, outermost first. */
function nest(tensor: TensorView, axis: number, ...levels: readonly (readonly [ParallelType, number])[]): void {
  levels.forEach(([type, parts], i) => tensor.outerSplit(axis + i, parts).parallelize(type));
}

const grid = [
  [0, 1],
  [2, 3],
];

const cases: readonly Case[] = [
  {
    name: "shares of one index in two chunks, which only the first device of two has",
    mesh: grid,
    shapes: [[1, 2]],
    body: (f, mesh) => {
      const x = f.input([1, 2]);
      const y = relu(x);
      for (const tensor of [x, y]) tensor.setDeviceMesh(mesh);
      nest(x, 0, ["DIDy", 2]);
      nest(y, 1, ["DIDx", 2], ["Stream", 2]);
      return [y];
    },
  },
  {
    name: "chunks of shares of 7 in 3, permuted, and gathered along another type",
    mesh: [[0, 1, 2]],
    shapes: [
      [2, 2],
      [7, 2],
    ],
    body: (f, mesh) => {
      const [x, w] = [f.input([2, 2]), f.input([7, 2])];
      const y = permute(linear(x, w), [1, 0]);
      const z = relu(y);
      for (const tensor of [x, w, z]) tensor.setDeviceMesh(mesh);
      nest(x, 0, ["DIDy", 1]);
      nest(z, 0, ["DIDx", 3], ["Stream", 2]);
      return [z];
    },
  },
  {
    name: "13 rows on 2 devices in 2 chunks each, gathered along the other axis",
    mesh: grid,
    shapes: [[13, 3]],
    body: (f, mesh) => {
      const x = f.input([13, 3]);
      const y = relu(x);
      const z = relu(y);
      for (const tensor of [x, z]) tensor.setDeviceMesh(mesh);
      nest(x, 1, ["DIDy", 2]);
      nest(x, 0, ["DIDx", 2], ["Stream", 2]);
      nest(z, 0, ["DIDx", 2], ["Stream", 2]);
      return [z];
    },
  },
  {
    name: "8 rows on a mesh of 2 x 4, permuted: more chunks than a share has rows",
    mesh: [
      [0, 1, 2, 3],
      [4, 5, 6, 7],
    ],
    shapes: [[4, 8]],
    body: (f, mesh) => {
      const x = f.input([4, 8]);
      const y = permute(x, [1, 0]);
      for (const tensor of [x, y]) tensor.setDeviceMesh(mesh);
      nest(x, 1, ["DIDy", 2]);
      nest(y, 0, ["DIDx", 4], ["Stream", 8]);
      return [relu(y)];
    },
  },
  {
    name: "chunks of what two types share out",
    mesh: grid,
    shapes: [[13, 3]],
    body: (f, mesh) => {
      const x = f.input([13, 3]);
      x.setDeviceMesh(mesh);
      nest(x, 0, ["DIDy", 2], ["DIDx", 2], ["Stream", 3]);
      return [relu(x)];
    },
  },
  {
    name: "chunks between the shares of two types",
    mesh: grid,
    shapes: [[9, 3]],
    body: (f, mesh) => {
      const x = f.input([9, 3]);
      x.setDeviceMesh(mesh);
      nest(x, 0, ["DIDy", 2], ["Stream", 2], ["DIDx", 2]);
      return [relu(relu(x))];
    },
  },
  {
    name: "shares of two types that become chunks of one",
    mesh: [[0, 1, 2]],
    shapes: [[2, 5]],
    body: (f, mesh) => {
      const x = f.input([2, 5]);
      const y = relu(x);
      for (const tensor of [x, y]) tensor.setDeviceMesh(mesh);
      nest(x, 1, ["DIDy", 1], ["DIDx", 3]);
      nest(y, 1, ["Stream", 2], ["DIDx", 3]);
      return [y];
    },
  },
  {
    name: "columns of symbolic rows in chunks",
    mesh: [0, 1],
    shapes: [
      [5, 4],
      [6, 4],
    ],
    body: (f, mesh) => {
      const [x, w] = [f.input([null, 4]), f.input([6, 4])];
      for (const tensor of [x, w]) tensor.setDeviceMesh(mesh);
      const y = linear(x, w);
      nest(w, 0, ["DIDx", 2]);
      nest(y, 0, ["Stream", 3]);
      const [rows] = y.extents;
      return [relu(slice(relu(x), [0, 1], [rows ?? 5, 3])), y];
    },
  },
  {
    name: "columns of chunks of shares of 13 rows",
    mesh: grid,
    shapes: [[13, 6]],
    body: (f, mesh) => {
      const x = f.input([13, 6]);
      x.setDeviceMesh(mesh);
      nest(x, 0, ["DIDy", 2], ["DIDx", 2], ["Stream", 3]);
      const y = relu(x);
      return [add(slice(y, [0, 0], [13, 3]), slice(tanh(y), [0, 3], [13, 6]))];
    },
  },
  {
    name: "a contraction of nothing in chunks that are spread over the devices",
    mesh: [0, 1, 2],
    shapes: [[2, 4, 0], [4, 0], [4]],
    body: (f, mesh) => {
      const [x, w, bias] = [f.input([2, 4, 0]), f.input([4, 0]), f.input([4])];
      const y = linear(x, w, bias);
      for (const tensor of [x, w, bias, y]) tensor.setDeviceMesh(mesh);
      nest(x, 1, ["DIDx", 3]);
      nest(w, 1, ["DIDx", 3]);
      nest(y, 1, ["Stream", 3], ["DIDx", 3]);
      return [y];
    },
  },
  ...(["Stream", "DIDx"] as const).map((outer): Case => ({
    name: `a bias of 5 elements beside symbolic rows, ${outer} outside, one row a chunk`,
    mesh: [0],
    shapes: [[5, 2], [5, 2], [5]],
    body: (f, mesh) => {
      const [x, w, bias] = [f.input([null, 2]), f.input([null, 2]), f.input([5])];
      const y = linear(x, w, bias);
      for (const tensor of [x, w, bias, y]) tensor.setDeviceMesh(mesh);
      nest(
        y,
        1,
        ...(
          [
            ["Stream", 5],
            ["DIDx", 1],
          ] as const
        ).toSorted(([type]) => (type === outer ? -1 : 1)),
      );
      return [y];
    },
  })),
  {
    name: "one column on two devices, added to one that both have, in three chunks",
    mesh: [0, 1],
    shapes: [
      [2, 1],
      [2, 1],
    ],
    setting: { shrink: true, insertReshardingAfter: true },
    body: (f, mesh) => {
      const [x, b] = [f.input([2, 1]), f.input([2, 1])];
      const y = add(x, b);
      for (const tensor of [x, y]) tensor.setDeviceMesh(mesh);
      nest(x, 1, ["DIDx", 2]);
      nest(y, 0, ["Stream", 3], ["DIDx", 2]);
      return [relu(relu(y))];
    },
  },
  {
    name: "one row times a row for all on one device, in chunks of its share",
    mesh: [0],
    shapes: [
      [2, 2],
      [1, 2],
    ],
    body: (f, mesh) => {
      const [x, row] = [f.input([2, 2]), f.input([1, 2])];
      const y = mul(x, row);
      for (const tensor of [x, row, y]) tensor.setDeviceMesh(mesh);
      nest(y, 0, ["DIDx", 1], ["Stream", 2]);
      return [y];
    },
  },
  {
    name: "a maximum over an axis that two types share out, one of them one device",
    mesh: [[0, 1, 2]],
    shapes: [[2, 3]],
    body: (f, mesh) => {
      const x = f.input([2, 3]);
      const z = div(exp(sub(x, broadcast(amax(x, [1]), [false, true]))), x);
      for (const tensor of [x, z]) tensor.setDeviceMesh(mesh);
      nest(x, 1, ["DIDy", 1], ["DIDx", 3]);
      nest(z, 1, ["DIDx", 3], ["Stream", 2]);
      return [z];
    },
  },
  {
    name: "slots for chunks of a contraction, of which the devices of two types have parts",
    mesh: [
      [0, 1],
      [2, 3],
      [4, 5],
    ],
    shapes: [
      [2, 2, 3],
      [3, 4],
      [4, 4],
    ],
    setting: { shrink: true, accumulate: true },
    body: (f, mesh) => {
      const [x, w, v] = [f.input([2, 2, 3]), f.input([3, 4]), f.input([4, 4])];
      for (const tensor of [x, w, v]) tensor.setDeviceMesh(mesh);
      nest(x, 2, ["DIDx", 2]);
      nest(x, 1, ["DIDy", 3]);
      nest(w, 1, ["DIDy", 3]);
      nest(w, 0, ["Stream", 2]);
      nest(v, 1, ["DIDy", 3]);
      return [relu(matmul(matmul(relu(x), w), v))];
    },
  },
  {
    name: "slots for chunks of columns that change their type",
    mesh: grid,
    shapes: [[2, 3]],
    setting: { shrink: true, streams: 4 },
    body: (f, mesh) => {
      const x = f.input([2, 3]);
      const y = relu(x);
      for (const tensor of [x, y]) tensor.setDeviceMesh(mesh);
      nest(x, 1, ["DIDy", 2]);
      nest(y, 1, ["Stream", 2], ["DIDx", 2]);
      return [relu(relu(y))];
    },
  },
];

it.each(cases)("$name", async ({ mesh, shapes, setting, body }) => {
  const fusion = new Fusion();
  const devices = new DeviceMesh(mesh);
  for (const result of body(fusion, devices)) fusion.output(result);
  const graph = { fusion, devices: devices.devices.length, shapes };
  expect(await checkFusion(graph, { streams: 2, ...setting }, 1)).toMatchObject({ refused: null });
  const data = fusion.data();
  const sizes = sizesFromShapes(
    data.inputs.map((id) => at(data.tensors, id)),
    shapes,
  );
  const { program } = compile(fusion, { ...setting, devices: graph.devices, sizes });
  expect(simulate(program, roundProfile, { graph: true }).milliseconds).toBeGreaterThan(0);
});
