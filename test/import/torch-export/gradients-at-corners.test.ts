/** Gradients where a function has a corner, as PyTorch 2.13's autograd gives them. */
import { expect, it } from "vitest";
import { importModel, Tensor } from "@braid-compiler/braid";
import { evaluateFusion } from "../../../src/oracle/evaluate.ts";
import { modelFile, type WrittenNode } from "./written-model.ts";

type Rows = readonly (readonly number[])[];

interface Corner {
  readonly name: string;
  readonly nodes: readonly WrittenNode[];
  readonly x: Rows;
  /** With the cotangent 1, 2, 3, .. */
  readonly shape: readonly number[];
  readonly gradient: Rows;
}

const corners: readonly Corner[] = [
  {
    name: "a detached factor",
    nodes: [
      { op: "detach.default", inputs: { self: "x" }, outputs: { d: ["float", [1, 2]] } },
      { op: "mul.Tensor", inputs: { self: "x", other: "d" }, outputs: { y: ["float", [1, 2]] } },
    ],
    x: [[3, 5]],
    shape: [1, 2],
    gradient: [[3, 10]],
  },
  {
    name: "a detached factor, which is an alias after run_decompositions",
    nodes: [
      {
        op: "alias.default",
        inputs: { self: "x" },
        outputs: { d: ["float", [1, 2]] },
        from: '[{"name": "detach", "target": "aten.detach.default", "graph_id": 1, "from_node": []}]',
      },
      { op: "mul.Tensor", inputs: { self: "x", other: "d" }, outputs: { y: ["float", [1, 2]] } },
    ],
    x: [[3, 5]],
    shape: [1, 2],
    gradient: [[3, 10]],
  },
  {
    name: "an alias of something else",
    nodes: [
      {
        op: "alias.default",
        inputs: { self: "x" },
        outputs: { d: ["float", [1, 2]] },
        from: '[{"name": "t", "target": "aten.t.default", "graph_id": 1, "from_node": []}]',
      },
      { op: "mul.Tensor", inputs: { self: "x", other: "d" }, outputs: { y: ["float", [1, 2]] } },
    ],
    x: [[3, 5]],
    shape: [1, 2],
    gradient: [[6, 20]],
  },
  {
    name: "a maximum of equal elements, by index",
    nodes: [
      {
        op: "max.dim",
        inputs: { self: "x", dim: 1 },
        outputs: { y: ["float", [2]], i: ["int64", [2]] },
      },
    ],
    x: [
      [4, 4, 1],
      [0, 2, 2],
    ],
    shape: [2],
    gradient: [
      [1, 0, 0],
      [0, 2, 0],
    ],
  },
  {
    name: "a minimum of equal elements, by index",
    nodes: [
      {
        op: "min.dim",
        inputs: { self: "x", dim: -1, keepdim: true },
        outputs: { y: ["float", [1, 1]], i: ["int64", [1, 1]] },
      },
    ],
    x: [[4, 1, 1]],
    shape: [1, 1],
    gradient: [[0, 1, 0]],
  },
  {
    name: "rows of a table, of which one is padding",
    nodes: [
      { op: "arange.default", inputs: { end: 3 }, outputs: { i: ["int64", [3]] } },
      {
        op: "embedding.default",
        inputs: { weight: "x", indices: "i", padding_idx: 1 },
        outputs: { y: ["float", [3, 2]] },
      },
    ],
    x: [
      [1, 2],
      [3, 4],
      [5, 6],
    ],
    shape: [3, 2],
    gradient: [
      [1, 2],
      [0, 0],
      [5, 6],
    ],
  },
  {
    name: "a function that is cut, on its bounds",
    nodes: [
      { op: "hardtanh.default", inputs: { self: "x", min_val: -1, max_val: 2 }, outputs: { y: ["float", [1, 4]] } },
    ],
    x: [[-1, 0, 2, 3]],
    shape: [1, 4],
    gradient: [[0, 2, 0, 0]],
  },
  {
    name: "an exponential where it is not read, and at 0",
    nodes: [{ op: "celu.default", inputs: { self: "x", alpha: 2 }, outputs: { y: ["float", [1, 2]] } }],
    x: [[0, 1e30]],
    shape: [1, 2],
    gradient: [[1, 2]],
  },
  {
    name: "a norm of zeros",
    nodes: [
      { op: "linalg_vector_norm.default", inputs: { self: "x", ord: 2, dim: [1] }, outputs: { y: ["float", [2]] } },
    ],
    x: [
      [0, 0],
      [3, 4],
    ],
    shape: [2],
    gradient: [
      [0, 0],
      [1.2, 1.6],
    ],
  },
  {
    name: "a standard deviation of equal elements",
    nodes: [
      {
        op: "std.correction",
        inputs: { self: "x", dim: [1], correction: 0 },
        outputs: { y: ["float", [2]] },
      },
    ],
    x: [
      [2, 2],
      [1, 3],
    ],
    shape: [2],
    gradient: [
      [0, 0],
      [-1, 1],
    ],
  },
];

it.each(corners)("$name", async ({ nodes, x, shape, gradient }) => {
  const values = Tensor.from(x, "float");
  const bytes = modelFile({ inputs: { x: ["float", values.shape] }, nodes, outputs: ["y"] });
  const { fusion } = await importModel(bytes, { file: "m.pt2", gradients: "dy", wrt: ["x"] });
  const count = shape.reduce((product, extent) => product * extent, 1);
  const dy: Tensor = { dtype: "float", shape, data: Float32Array.from({ length: count }, (_, i) => i + 1) };
  const [, found] = evaluateFusion(fusion.data(), [values, dy]).outputs;
  expect(found?.shape).toEqual(values.shape);
  expect(Array.from(found?.data ?? [], Number)).toEqual(gradient.flat().map(Math.fround));
});
