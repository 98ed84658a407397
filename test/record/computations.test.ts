/** Every op as kernels, copies and views. Run-programs and the conformance tests check results. */
import {
  broadcast,
  cumsum,
  exp,
  Fusion,
  HostProgramBuilder,
  relu,
  select,
  slice,
  sum,
  type TensorView,
} from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import { record } from "../../src/compile/record.ts";
import { dataKinds, listing, type ListingOptions } from "./listing.ts";

function dataOf(build: (h: HostProgramBuilder) => void, options: ListingOptions = { kinds: dataKinds }): string {
  const h = new HostProgramBuilder();
  build(h);
  return listing(record(h.build(), { rank: 0 }), options);
}

describe("set", () => {
  it("copies into memory, and binds a tensor without memory to its source", () => {
    const text = dataOf((h) => {
      const [x, y] = [h.input([4]), h.tensor([4])];
      h.output(y);
      h.set(h.set(x), { out: y });
    });
    expect(text).toMatchInlineSnapshot(`
      "
      caller: copy T0 float [4] -> T1 float [4]
      "
    `);
  });

  it("follows its source when the same statement runs again", () => {
    const text = dataOf((h) => {
      const [x, y] = [h.input([2, 4]), h.tensor([2, 4])];
      h.output(y);
      h.forLoop(2, (i) => {
        const same = h.set(h.select(x, 0, i));
        h.add(same, same, { out: h.select(y, 0, i) });
      });
    });
    expect(text).toMatchInlineSnapshot(`
      "
      caller: add(T0 float [4], T0 float [4]) -> T1 float [4]
      caller: add(T0+16 float [4], T0+16 float [4]) -> T1+16 float [4]
      "
    `);
  });

  it("writes through to the source when another statement writes the tensor, as nvFuser does", () => {
    const text = dataOf((h) => {
      const [x, y] = [h.input([4]), h.input([4])];
      const same = h.set(x);
      h.set(y, { out: same });
    });
    expect(text).toMatchInlineSnapshot(`
      "
      caller: copy T1 float [4] -> T0 float [4]
      "
    `);
  });

  it("records nothing for a tensor onto itself, and goes through a temporary where the sides overlap", () => {
    const text = dataOf((h) => {
      const x = h.input([8]);
      h.set(x, { out: x });
      h.set(h.slice(x, [0], [6]), { out: h.slice(x, [2], [8]) });
    }, {});
    expect(text).toMatchInlineSnapshot(`
      "
      caller: alloc T0'
      caller: copy T0 float [6] -> T0' float [6]
      caller: copy T0' float [6] -> T0+8 float [6]
      caller: free T0'
      "
    `);
  });
});

describe("binary", () => {
  it("stretches operands of one element by stride 0", () => {
    const text = dataOf((h) => {
      const [x, y] = [h.input([2, 1, 3]), h.input(["broadcast", 4, 3])];
      h.mul(x, y);
    });
    expect(text).toMatchInlineSnapshot(`
      "
      caller: mul(T0 float [2, 4, 3] strides [3, 0, 1], T1 float [2, 4, 3] strides [0, 3, 1]) -> T2 float [2, 4, 3]
      "
    `);
  });

  it("works in place on the very same elements, else through a temporary", () => {
    const text = dataOf((h) => {
      const x = h.input([8]);
      const [low, high] = [h.slice(x, [0], [6]), h.slice(x, [2], [8])];
      h.sub(low, high, { out: low });
      h.add(low, low, { out: low });
    });
    expect(text).toMatchInlineSnapshot(`
      "
      caller: sub(T0 float [6], T0+8 float [6]) -> T0' float [6]
      caller: copy T0' float [6] -> T0 float [6]
      caller: add(T0 float [6], T0 float [6]) -> T0 float [6]
      "
    `);
  });
});

describe("reduction", () => {
  it("drops its axes", () => {
    const text = dataOf((h) => {
      h.amax(h.input([2, 3, 4]), [0, 2]);
    });
    expect(text).toMatchInlineSnapshot(`
      "
      caller: amax[0, 2](T0 float [2, 3, 4]) -> T1 float [3]
      "
    `);
  });
});

describe("slice and select", () => {
  it("bind a tensor without memory, and copy into one with", () => {
    const text = dataOf((h) => {
      const [x, y, z] = [h.input([4, 6]), h.tensor([2, 3]), h.tensor([6])];
      h.output(y);
      h.output(z);
      h.slice(x, [1, 2], [3, 5], { out: y });
      h.selectOp(x, 0, 3, { out: z });
      const view = h.selectOp(h.slice(x, [2, 0], [4, 6]), 0, 1);
      h.add(view, view, { out: z });
    });
    expect(text).toMatchInlineSnapshot(`
      "
      caller: copy T0+32 float [2, 3] strides [6, 1] -> T1 float [2, 3]
      caller: copy T0+72 float [6] -> T2 float [6]
      caller: add(T0+72 float [6], T0+72 float [6]) -> T2 float [6]
      "
    `);
  });
});

describe("matmul", () => {
  const matmulOf = (a: readonly number[], b: readonly number[]): string =>
    dataOf((h) => {
      h.matmul(h.input(a), h.input(b));
    }).trim();

  it.each([
    ["two matrices", [4, 8], [8, 2], "matmul(T0 float [4, 8], T1 float [8, 2]) -> T2 float [4, 2]"],
    [
      "rows of batches as rows of one matrix",
      [3, 4, 8],
      [8, 2],
      "matmul(T0 float [12, 8], T1 float [8, 2]) -> T2 float [12, 2]",
    ],
    ["several of them", [5, 3, 4, 8], [1, 8, 2], "matmul(T0 float [60, 8], T1 float [8, 2]) -> T2 float [60, 2]"],
    ["equal batches", [3, 4, 8], [3, 8, 2], "matmul(T0 float [3, 4, 8], T1 float [3, 8, 2]) -> T2 float [3, 4, 2]"],
    ["unit batches", [1, 4, 8], [1, 8, 2], "matmul(T0 float [4, 8], T1 float [8, 2]) -> T2 float [4, 2]"],
    [
      "a stretched first operand",
      [1, 4, 8],
      [3, 8, 2],
      "matmul(T0 float [3, 4, 8] strides [0, 8, 1], T1 float [3, 8, 2]) -> T2 float [3, 4, 2]",
    ],
    [
      "outer batches stretched, inner ones not",
      [2, 3, 4, 8],
      [3, 8, 2],
      "matmul(T0 float [2, 3, 4, 8], T1 float [2, 3, 8, 2] strides [0, 16, 2, 1]) -> T2 float [2, 3, 4, 2]",
    ],
    ["a vector and a matrix", [8], [8, 2], "matmul(T0 float [1, 8], T1 float [8, 2]) -> T2 float [1, 2]"],
    ["a matrix and a vector", [4, 8], [8], "matmul(T0 float [4, 8], T1 float [8, 1]) -> T2 float [4, 1]"],
    ["two vectors", [8], [8], "matmul(T0 float [1, 8], T1 float [8, 1]) -> T2 float [1, 1]"],
    ["batched matrices and a vector", [3, 4, 8], [8], "matmul(T0 float [12, 8], T1 float [8, 1]) -> T2 float [12, 1]"],
    [
      "a vector and batched matrices",
      [8],
      [3, 8, 2],
      "matmul(T0 float [3, 1, 8] strides [0, 1, 1], T1 float [3, 8, 2]) -> T2 float [3, 1, 2]",
    ],
  ])("takes %s", (_, a, b, expected) => {
    expect(matmulOf(a, b)).toBe(`caller: ${expected}`);
  });

  it("keeps batches apart where their rows do not join in memory", () => {
    const text = dataOf((h) => {
      const a = h.slice(h.input([3, 5, 8]), [0, 0, 0], [3, 4, 8]);
      h.matmul(a, h.input([8, 2]));
    });
    expect(text).toMatchInlineSnapshot(`
      "
      caller: matmul(T0 float [3, 4, 8] strides [40, 8, 1], T2 float [3, 8, 2] strides [0, 2, 1]) -> T3 float [3, 4, 2]
      "
    `);
  });
});

describe("linear", () => {
  const linearOf = (x: readonly number[], weight: readonly number[], bias?: readonly number[]): string =>
    dataOf((h) => {
      h.linear(h.input(x), h.input(weight), bias === undefined ? null : h.input(bias));
    }).trim();

  it.each([
    ["without bias", [4, 8], [2, 8], undefined, "linear(T0 float [4, 8], T1 float [2, 8]) -> T2 float [4, 2]"],
    ["with bias", [4, 8], [2, 8], [2], "linear(T0 float [4, 8], T1 float [2, 8], T2 float [2]) -> T3 float [4, 2]"],
    [
      "over leading axes",
      [3, 4, 8],
      [2, 8],
      undefined,
      "linear(T0 float [12, 8], T1 float [2, 8]) -> T2 float [12, 2]",
    ],
    ["of a vector", [8], [2, 8], [2], "linear(T0 float [1, 8], T1 float [2, 8], T2 float [2]) -> T3 float [1, 2]"],
    ["with one output feature", [4, 8], [8], undefined, "linear(T0 float [4, 8], T1 float [1, 8]) -> T2 float [4, 1]"],
    [
      "with one output feature and bias",
      [4, 8],
      [8],
      [],
      "linear(T0 float [4, 8], T1 float [1, 8], T2 float [1]) -> T3 float [4, 1]",
    ],
  ])("%s", (_, x, weight, bias, expected) => {
    expect(linearOf(x, weight, bias)).toBe(`caller: ${expected}`);
  });
});

describe("host units", () => {
  const build = (h: HostProgramBuilder, fusion: Fusion, inputs: readonly (readonly number[])[]): void => {
    h.postOnStream(
      fusion,
      inputs.map((shape) => h.input(shape)),
    );
  };

  it("are one launch, in newly allocated memory", () => {
    const fusion = new Fusion();
    const x = fusion.input([null, 4]);
    fusion.output(relu(sum(x, [0])));
    fusion.output(exp(x));
    const text = dataOf((h) => build(h, fusion, [[3, 4]]), {});
    expect(text).toMatchInlineSnapshot(`
      "
      caller: alloc T1
      caller: alloc T2
      caller: unit Reduction+Unary+Unary (T0 float [3, 4]) -> T1 float [4], T2 float [3, 4]
      "
    `);
  });

  it("have concrete values, steps and results", () => {
    const fusion = new Fusion();
    const x = fusion.input([null, 4]);
    fusion.output(select(slice(broadcast(x, [false, true, false]), [0, 0, 1], [2, 1, 3]), 0, -1));
    const h = new HostProgramBuilder();
    build(h, fusion, [[3, 4]]);
    const { kernels } = record(h.build(), { rank: 0 });
    expect(kernels).toEqual([
      {
        kind: "unit",
        inputs: [{ dtype: "float", shape: [3, 4], strides: [4, 1] }],
        outputs: [{ dtype: "float", shape: [1, 2], strides: [2, 1] }],
        values: [
          { dtype: "float", shape: [3, 4] },
          { dtype: "float", shape: [3, 1, 4] },
          { dtype: "float", shape: [2, 1, 2] },
          { dtype: "float", shape: [1, 2] },
        ],
        steps: [
          { kind: "Broadcast", flags: [false, true, false], inputs: [0], output: 1 },
          {
            kind: "Slice",
            ranges: [
              { start: 0, stop: 2 },
              { start: 0, stop: 1 },
              { start: 1, stop: 3 },
            ],
            inputs: [1],
            output: 2,
          },
          { kind: "Select", axis: 0, index: 1, inputs: [2], output: 3 },
        ],
        results: [3],
      },
    ]);
  });

  const overOperand = (build: (x: TensorView) => TensorView): string => {
    const fusion = new Fusion();
    fusion.output(build(fusion.input([4])));
    return dataOf((h) => {
      const y = h.input([4]);
      h.postOnStream(fusion, [y], [y]);
    });
  };

  it("write over what they read element by element", () => {
    expect(overOperand(relu)).toMatchInlineSnapshot(`
      "
      caller: unit Unary (T0 float [4]) -> T0 float [4]
      "
    `);
  });

  it("write through a temporary what they also read otherwise", () => {
    expect(overOperand((x) => cumsum(x, 0))).toMatchInlineSnapshot(`
      "
      caller: unit Scan (T0 float [4]) -> T0' float [4]
      caller: copy T0' float [4] -> T0 float [4]
      "
    `);
  });
});

describe("kernels", () => {
  it("are shared by statements and iterations that compute the same", () => {
    const h = new HostProgramBuilder();
    const [x, y] = [h.input([4, 8]), h.tensor([4, 8])];
    h.output(y);
    h.forLoop(4, (i) => h.add(h.select(x, 0, i), h.select(x, 0, i), { out: h.select(y, 0, i) }));
    h.add(h.select(x, 0, 0), h.select(x, 0, 1), { out: h.select(y, 0, 3) });
    h.sub(h.select(x, 0, 0), h.select(x, 0, 1), { out: h.select(y, 0, 3) });
    const { kernels, commands } = record(h.build(), { rank: 0 });
    expect(kernels.map((kernel) => kernel.kind === "binary" && kernel.op)).toEqual(["add", "sub"]);
    expect(commands.filter(({ kind }) => kind === "launch")).toHaveLength(6);
  });

  it("follow operands that change from one iteration to the next", () => {
    const h = new HostProgramBuilder();
    const [x, y] = [h.input([4, 4]), h.tensor([4, 4])];
    h.output(y);
    h.forLoop(2, (i) => {
      const to = h.select(y, 0, i);
      const from = h.tensor([4], { memory: "local" });
      h.ifThenElse(
        i,
        () => h.select(x, 0, 1, { out: from }),
        () => h.select(x, 1, 1, { out: from }),
      );
      h.add(from, from, { out: to });
    });
    expect(listing(record(h.build(), { rank: 0 }))).toMatchInlineSnapshot(`
      "
      caller: add(T0+4 float [4] strides [4], T0+4 float [4] strides [4]) -> T1 float [4]
      caller: add(T0+16 float [4], T0+16 float [4]) -> T1+16 float [4]
      "
    `);
  });
});
