/** What depends on constants alone: masks of any size, positions, and tables of complex numbers. */
import { describe, expect, it } from "vitest";
import { buildModel } from "../../../src/import/torch-export/build.ts";
import type { ExportedModel } from "../../../src/import/torch-export/model.ts";
import { sourceOfBytes } from "../../../src/import/byte-source.ts";
import { readExportedProgram } from "../../../src/import/torch-export/read.ts";
import { constantValue } from "../../../src/ir/scalar/fold.ts";
import { Tensor } from "../../../src/numerics/tensor/host-tensor.ts";
import { evaluateFusion } from "../../../src/oracle/evaluate.ts";
import { dtypeArgument, entriesOf, modelFile, type WrittenModel, type WrittenNode, zipOf } from "./written-model.ts";

function built(model: WrittenModel): ExportedModel {
  return buildModel(readExportedProgram(sourceOfBytes(modelFile(model))));
}

/** Attention of q [1, 2, L, 4] on itself, with the mask that the nodes make as [1, 1, L, L]. */
function attention(length: number | string, mask: readonly WrittenNode[], last: string): WrittenModel {
  const heads = ["float", [1, 2, length, 4]] as const;
  return {
    inputs: { q: heads },
    nodes: [
      { op: "sym_size.int", inputs: { self: "q", dim: 2 }, outputs: { n: ["int64", []] } },
      ...mask,
      {
        op: "scaled_dot_product_attention.default",
        inputs: { query: "q", key: "q", value: "q", attn_mask: last },
        outputs: { y: heads },
      },
    ],
    outputs: ["y"],
  };
}

/** Keys [1, 1, 1, L] and queries [1, 1, L, 1], compared. */
function compared(length: number | string, op: string, shift: number): readonly WrittenNode[] {
  const end = typeof length === "number" ? length : { as_sym_int: { as_name: "n" } };
  const unsqueezed = (from: string, to: string, dim: number, sizes: readonly (number | string)[]): WrittenNode => ({
    op: "unsqueeze.default",
    inputs: { self: from, dim },
    outputs: { [to]: ["int64", sizes] },
  });
  return [
    { op: "arange.default", inputs: { end }, outputs: { i: ["int64", [length]] } },
    { op: "add.Tensor", inputs: { self: "i", other: shift }, outputs: { s: ["int64", [length]] } },
    unsqueezed("s", "s1", 0, [1, length]),
    unsqueezed("s1", "s2", 0, [1, 1, length]),
    unsqueezed("s2", "rows", -1, [1, 1, length, 1]),
    unsqueezed("i", "i1", 0, [1, length]),
    unsqueezed("i1", "i2", 0, [1, 1, length]),
    unsqueezed("i2", "keys", 2, [1, 1, 1, length]),
    { op, inputs: { self: "keys", other: "rows" }, outputs: { m: ["bool", [1, 1, length, length]] } },
  ];
}

/** Keys up to the query, and of them those after the query less `window`. */
function windowed(length: number | string, window: number): readonly WrittenNode[] {
  const square = ["bool", [1, 1, length, length]] as const;
  return [
    ...compared(length, "le.Tensor", 0),
    { op: "sub.Tensor", inputs: { self: "rows", other: window }, outputs: { w: ["int64", [1, 1, length, 1]] } },
    { op: "gt.Tensor", inputs: { self: "keys", other: "w" }, outputs: { a: square } },
    { op: "__and__.Tensor", inputs: { self: "a", other: "m" }, outputs: { b: square } },
  ];
}

function windowsOf(model: ExportedModel): readonly (number | null)[] {
  return model.fusion.data().ops.flatMap((op) => (op.kind === "Sdpa" ? [op.window] : []));
}

function causalOf(model: ExportedModel): readonly (string | null)[] {
  return model.fusion.data().ops.flatMap((op) => (op.kind === "Sdpa" ? [op.causal] : []));
}

const [six, four] = [
  [0, 1, 2, 3, 4, 5],
  [0, 1, 2, 3],
];

/** [1, 2, 6, 4]. */
const drawnHeads = Tensor.from([[0, 1].map((head) => six.map((row) => four.map((i) => Math.sin(head + 3 * row + i))))]);

/** Compares attention of `drawnHeads` to themselves, the first output, with its definition. */
function expectAttention(
  { fusion, inputs }: ExportedModel,
  given: readonly Tensor[],
  sees: (row: number, key: number) => boolean,
): void {
  const rest = [...given];
  const [found] = evaluateFusion(
    fusion.data(),
    inputs.map(({ read }) => read() ?? rest.shift() ?? drawnHeads),
  ).outputs;
  const at = (head: number, row: number, i: number): number => drawnHeads.data[(head * 6 + row) * 4 + i] ?? NaN;
  for (const head of [0, 1]) {
    for (const row of six) {
      const powers = six.map((key) => {
        const score = four.reduce((sum, i) => sum + at(head, row, i) * at(head, key, i), 0) / 2;
        return sees(row, key) ? Math.exp(score) : 0;
      });
      const total = powers.reduce((a, b) => a + b, 0);
      for (const i of four) {
        const wanted = powers.reduce((sum, p, key) => sum + p * at(head, key, i), 0) / (total || 1);
        expect(Number(found?.data[(head * 6 + row) * 4 + i])).toBeCloseTo(wanted, 5);
      }
    }
  }
}

describe("masks", () => {
  it.each([[6], [100_000], ["Symbol('s0', positive=True, integer=True)"]])(
    "keys up to the query, of %s tokens",
    (length) => {
      const model = built(attention(length, compared(length, "le.Tensor", 0), "m"));
      expect(causalOf(model)).toEqual(["topLeft"]);
      // Nothing of L x L is left.
      const live = model.fusion.data();
      expect(live.inputs.length).toBe(1);
      expect(live.ops.length).toBe(1);
    },
  );

  it("keys before the query plus one are the same", () => {
    expect(causalOf(built(attention(6, compared(6, "lt.Tensor", 1), "m")))).toEqual(["topLeft"]);
  });

  it.each<readonly [number | string, number, number | null]>([
    [6, 3, 3],
    [100_000, 4096, 4096],
    ["Symbol('s0', positive=True, integer=True)", 4096, 4096],
    // Its first key is before all keys.
    [6, 6, null],
  ])("keys of a window, of %s tokens, the last %i", (length, window, found) => {
    const model = built(attention(length, windowed(length, window), "b"));
    expect(causalOf(model)).toEqual(["topLeft"]);
    expect(windowsOf(model)).toEqual([found]);
    expect(model.fusion.data().ops.length).toBe(1);
  });

  it("keys after a window's first one, without an end, are added", () => {
    expect(causalOf(built(attention(6, windowed(6, 3), "a")))).toEqual([null]);
  });

  it.each([
    ["bitwise_and.Tensor", 3, [0, 1, 2, 3, 0, 1]],
    ["bitwise_or.Tensor", 1, [1, 1, 3, 3, 5, 5]],
  ])("numbers that are joined by %s are no condition", (op, number, wanted) => {
    const integers = ["int64", [6]] as const;
    const nodes: readonly WrittenNode[] = [
      { op: "full.default", inputs: { size: [6], fill_value: number }, outputs: { t: integers } },
      { op: "arange.default", inputs: { end: 6 }, outputs: { i: integers } },
      { op, inputs: { self: "i", other: "t" }, outputs: { y: integers } },
    ];
    const { fusion, inputs } = built({ nodes, outputs: ["y"] });
    const read = inputs.flatMap((input) => input.read() ?? []);
    expect(Array.from(evaluateFusion(fusion.data(), read).outputs[0]?.data ?? [], Number)).toEqual(wanted);
  });

  describe.each(["__and__.Tensor", "logical_and.default", "bitwise_or.Tensor"])("%s of padding", (op) => {
    const [isJoined, square] = [!op.includes("_or"), ["bool", [1, 1, 6, 6]] as const];
    const mask: readonly WrittenNode[] = [
      ...compared(6, "le.Tensor", 0),
      { op, inputs: { self: "m", other: "p" }, outputs: { j: square } },
      { op: "to.dtype", inputs: { self: "j", dtype: dtypeArgument("bool") }, outputs: { t: square } },
      { op: "expand.default", inputs: { self: "t", size: [1, -1, 6, 6] }, outputs: { e: square } },
    ];
    const one = attention(6, mask, "e");
    const padded: WrittenModel = { ...one, inputs: { ...one.inputs, p: ["bool", [1, 1, 1, 6]] } };
    const again: WrittenNode = {
      op: "scaled_dot_product_attention.default",
      inputs: { query: "y", key: "y", value: "y", attn_mask: "e" },
      outputs: { z: ["float", [1, 2, 6, 4]] },
    };
    const model = built({ ...padded, nodes: [...padded.nodes, again], outputs: ["y", "z"] });
    const { ops, tensors } = model.fusion.data();

    it("is causal, with the padding added, which is made once", () => {
      const causal = isJoined ? "topLeft" : null;
      expect(causalOf(model)).toEqual([causal, causal]);
      const biases = ops.flatMap((each) => (each.kind === "Sdpa" ? [each.inputs[3] ?? -1] : []));
      expect(new Set(biases).size).toBe(1);
      const shape = tensors[biases[0] ?? -1]?.domain.logical.map(({ extent }) => constantValue(extent));
      expect(shape).toEqual(isJoined ? [1, 1, 1, 6] : [1, 1, 6, 6]);
    });

    it("has the values of its definition", () => {
      const open = [0, 1, 1, 0, 1, 1];
      const given = [drawnHeads, { dtype: "bool" as const, shape: [1, 1, 1, 6], data: Uint8Array.from(open) }];
      const sees = (row: number, key: number): boolean =>
        isJoined ? key <= row && open[key] === 1 : key <= row || open[key] === 1;
      expectAttention(model, given, sees);
    });
  });

  it("a mask that hides nothing is none", () => {
    const sees: WrittenNode = {
      op: "ge.Scalar",
      inputs: { self: "rows", other: -3 },
      outputs: { a: ["bool", [1, 1, 6, 1]] },
    };
    const all: WrittenNode = {
      op: "expand.default",
      inputs: { self: "a", size: [1, -1, 6, 6] },
      outputs: { e: ["bool", [1, 1, 6, 6]] },
    };
    expect(causalOf(built(attention(6, [...compared(6, "le.Tensor", 0), sees, all], "e")))).toEqual([null]);
  });

  it.each([
    [
      "keys before the query, which leave the first one nothing",
      "lt.Tensor",
      0,
      (row: number, key: number) => key < row,
    ],
    ["keys up to the second after the query", "le.Tensor", 2, (row: number, key: number) => key <= row + 2],
    ["keys from the query on", "ge.Tensor", 0, (row: number, key: number) => key >= row],
  ])("%s are added", (_, op, shift, sees) => {
    const model = built(attention(6, compared(6, op, shift), "m"));
    expect(causalOf(model)).toEqual([null]);
    expectAttention(model, [drawnHeads], sees);
  });
});

it("positions are counted, not stored", () => {
  const model = built({
    parameters: { "wpe.weight": Tensor.from([[1], [2], [3], [4]]) },
    nodes: [
      { op: "arange.start", inputs: { start: 1, end: 3 }, outputs: { i: ["int64", [2]] } },
      { op: "unsqueeze.default", inputs: { self: "i", dim: 0 }, outputs: { p: ["int64", [1, 2]] } },
      { op: "embedding.default", inputs: { weight: "wpe_weight", indices: "p" }, outputs: { y: ["float", [1, 2, 1]] } },
    ],
    outputs: ["y"],
  });
  expect(model.inputs.map(({ name }) => name)).toEqual(["wpe.weight"]);
  const weight = model.inputs[0]?.read();
  expect(
    evaluateFusion(model.fusion.data(), weight === null || weight === undefined ? [] : [weight]).outputs[0]?.data,
  ).toEqual(Float32Array.of(2, 3));
});

it("rotary embeddings of complex numbers are pairs of real ones", () => {
  const x = Tensor.from([
    [
      [1, 2, 3, 4],
      [5, 6, 7, 8],
    ],
  ]);
  // e^(i position frequency), for two positions of more and two frequencies.
  const angles = [0, 1, 2].map((position) => [position, position / 10]);
  const table = angles.map((row) => row.map((angle) => [Math.cos(angle), Math.sin(angle)]));
  const complex = (sizes: readonly number[]): readonly ["complex64", readonly number[]] => ["complex64", sizes];
  const model: WrittenModel = {
    inputs: { x: ["float", [1, 2, 4]] },
    buffers: { freqs: Tensor.from(table) },
    nodes: [
      { op: "slice.Tensor", inputs: { self: "freqs", dim: 0, start: 0, end: 2 }, outputs: { f: complex([2, 2]) } },
      { op: "view.default", inputs: { self: "f", size: [1, 2, 2] }, outputs: { f1: complex([1, 2, 2]) } },
      { op: "view.default", inputs: { self: "x", size: [1, 2, 2, 2] }, outputs: { x1: ["float", [1, 2, 2, 2]] } },
      { op: "view_as_complex.default", inputs: { self: "x1" }, outputs: { c: complex([1, 2, 2]) } },
      { op: "mul.Tensor", inputs: { self: "c", other: "f1" }, outputs: { d: complex([1, 2, 2]) } },
      { op: "view_as_real.default", inputs: { self: "d" }, outputs: { r: ["float", [1, 2, 2, 2]] } },
      { op: "flatten.using_ints", inputs: { self: "r", start_dim: 2 }, outputs: { y: ["float", [1, 2, 4]] } },
    ],
    outputs: ["y"],
  };
  const entries = entriesOf(model);
  // The buffer is complex in the file: [3, 2] of pairs.
  const asComplex = (text: string): string =>
    text.replace(
      '"dtype":7,"sizes":[{"as_int":3},{"as_int":2},{"as_int":2}],"requires_grad":false,"device":{"type":"cpu","index":null},"strides":[{"as_int":4},{"as_int":2},{"as_int":1}]',
      '"dtype":10,"sizes":[{"as_int":3},{"as_int":2}],"requires_grad":false,"device":{"type":"cpu","index":null},"strides":[{"as_int":2},{"as_int":1}]',
    );
  const changed = Object.fromEntries(
    Object.entries(entries).map(([name, content]) => [
      name,
      typeof content === "string" ? asComplex(content) : content,
    ]),
  );
  const { fusion, inputs } = buildModel(readExportedProgram(sourceOfBytes(zipOf(changed))));
  const found = evaluateFusion(
    fusion.data(),
    inputs.map(({ read }) => read() ?? x),
  ).outputs[0];
  [0, 1].forEach((position) => {
    [0, 1].forEach((pair) => {
      const [re, im] = [0, 1].map((part) => x.data[position * 4 + pair * 2 + part] ?? NaN);
      const [cos = 0, sin = 0] = table[position]?.[pair] ?? [];
      const at = position * 4 + pair * 2;
      expect(Number(found?.data[at])).toBeCloseTo((re ?? 0) * cos - (im ?? 0) * sin, 5);
      expect(Number(found?.data[at + 1])).toBeCloseTo((re ?? 0) * sin + (im ?? 0) * cos, 5);
    });
  });
});

it("core ATen's forms of linear and attention keep the batch", () => {
  const model = built({
    inputs: { x: ["float", [2, 3, 4]] },
    parameters: { "up.weight": Tensor.zeros([8, 4]), "up.bias": Tensor.zeros([8]) },
    nodes: [
      { op: "view.default", inputs: { self: "x", size: [6, 4] }, outputs: { v: ["float", [6, 4]] } },
      { op: "permute.default", inputs: { self: "up_weight", dims: [1, 0] }, outputs: { t: ["float", [4, 8]] } },
      { op: "addmm.default", inputs: { self: "up_bias", mat1: "v", mat2: "t" }, outputs: { a: ["float", [6, 8]] } },
      { op: "view.default", inputs: { self: "a", size: [2, 3, 8] }, outputs: { b: ["float", [2, 3, 8]] } },
      {
        op: "_to_copy.default",
        inputs: { self: "b", dtype: dtypeArgument("half") },
        outputs: { y: ["half", [2, 3, 8]] },
      },
    ],
    outputs: ["y"],
  });
  const { ops, tensors, outputs } = model.fusion.data();
  const product = ops.find(({ kind }) => kind === "Matmul");
  expect(tensors[product?.output ?? -1]?.domain.logical.length).toBe(4);
  expect(ops.filter(({ kind, inputs }) => kind === "Reshape" && inputs[0] !== model.inputs[0]?.tensor.id).length).toBe(
    1,
  );
  expect(tensors[outputs[0] ?? -1]?.dtype).toBe("half");
});

describe("sizes that export left open", () => {
  const size = (name: string): object => ({ as_sym_int: { as_name: name } });
  const rows = "Symbol('s0', positive=True, integer=True)";
  const model: WrittenModel = {
    inputs: { x: ["double", [rows, 2]] },
    nodes: [
      { op: "sym_size.int", inputs: { self: "x", dim: 0 }, outputs: { n: ["int64", []] } },
      { op: "sym_numel.default", inputs: { self: "x" }, outputs: { all: ["int64", []] } },
      { op: "._operator.floordiv", inputs: { a: size("n"), b: 2 }, outputs: { half: ["int64", []] } },
      { op: "._operator.mod", inputs: { a: size("n"), b: 2 }, outputs: { odd: ["int64", []] } },
      { op: "div.Tensor", inputs: { self: "x", other: size("all") }, outputs: { a: ["double", [rows, 2]] } },
      { op: "add.Tensor", inputs: { self: "a", other: size("half") }, outputs: { b: ["double", [rows, 2]] } },
      { op: "sub.Tensor", inputs: { self: "b", other: size("odd"), alpha: 10 }, outputs: { y: ["double", [rows, 2]] } },
    ],
    outputs: ["y"],
  };

  it.each([
    [3, 12 / 6 + 1 - 10],
    [4, 12 / 8 + 2],
  ])("are operands, of %s rows", (count, wanted) => {
    const x: Tensor = { dtype: "double", shape: [count, 2], data: new Float64Array(2 * count).fill(12) };
    const [y] = evaluateFusion(built(model).fusion.data(), [x]).outputs;
    expect(y?.shape).toEqual([count, 2]);
    expect(new Set(Array.from<number | bigint, number>(y?.data ?? [], Number))).toEqual(new Set([wanted]));
  });
});
