/** matmul and linear against sums in blocks of increasing k, bit for bit. */
import { describe, expect, it } from "vitest";
import type { Operand } from "../../src/commands/kernel.ts";
import { splitKernel } from "../../src/kernels/nests/split-kernel.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { binary, dot } from "./reference.ts";
import { asStored, count, operand, runKernel, type Values } from "./run-kernel.ts";
import { firstDifference, randomValues } from "./values.ts";

const dtypes = ["double", "float", "half", "bfloat16", "int", "int64"] as const;
type ArithmeticDType = (typeof dtypes)[number];

interface Sizes {
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

/** `held`: the previous output, to which the result is added. */
function product(
  dtype: ArithmeticDType,
  { m, n, k }: Sizes,
  a: Values,
  b: Values,
  bias?: Values,
  held?: Values,
): Values {
  return Array.from({ length: m * n }, (_, index) => {
    const row = Math.floor(index / n);
    const column = index % n;
    const pairs = Array.from({ length: k }, (_, i) => [at(a, row * k + i), at(b, i * n + column)] as const);
    return dot(dtype, pairs, bias === undefined ? null : at(bias, column), held === undefined ? null : at(held, index));
  });
}

function transposed(values: Values, rows: number, columns: number): Values {
  return Array.from({ length: rows * columns }, (_, i) => at(values, (i % rows) * columns + Math.floor(i / rows)));
}

const samples: readonly Sizes[] = [
  { m: 1, n: 1, k: 1 },
  { m: 1, n: 17, k: 3 },
  { m: 2, n: 2, k: 2 },
  { m: 3, n: 5, k: 7 },
  { m: 4, n: 8, k: 16 },
  { m: 5, n: 8, k: 1 },
  { m: 6, n: 9, k: 4 },
  { m: 11, n: 16, k: 13 },
  { m: 16, n: 1, k: 16 },
  { m: 17, n: 17, k: 17 },
];

describe.each(dtypes)("matmul of %s", (dtype) => {
  const random = createRandom(3);

  function check(sizes: Sizes, shapes: { a?: Operand; b?: Operand; c?: Operand } = {}, shared = false): void {
    const { m, n, k } = sizes;
    const a = randomValues(dtype, m * k, random);
    const b = randomValues(dtype, k * n, random);
    const inputs = [shapes.a ?? operand(dtype, [m, k]), shapes.b ?? operand(dtype, [k, n])];
    const outputs = [shapes.c ?? operand(dtype, [m, n])];
    const [found] = runKernel({ kind: "matmul", inputs, outputs }, [a, b], { shared });
    expect(firstDifference(found ?? [], product(dtype, sizes, a, b))).toBeNull();
  }

  it.each(samples)("$m x $k by $k x $n", (sizes) => check(sizes));

  it.each(samples)("transposed operands, $m x $k by $k x $n", (sizes) => {
    const { m, n, k } = sizes;
    check(sizes, { a: operand(dtype, [m, k], [1, m]), b: operand(dtype, [k, n], [1, k]) });
  });

  it("padded and interleaved strides on every side", () => {
    const sizes = { m: 7, n: 19, k: 6 };
    check(sizes, {
      a: operand(dtype, [7, 6], [31, 3]),
      b: operand(dtype, [6, 19], [2, 15]),
      c: operand(dtype, [7, 19], [2, 16]),
    });
    check(sizes, { c: operand(dtype, [7, 19], [24, 1]) });
    check(sizes, { c: operand(dtype, [7, 19], [1, 7]) });
  });

  it("several blocks along k", () => check({ m: 6, n: 11, k: 700 }));

  it("several blocks along m and n", () => {
    check({ m: 503, n: 9, k: 3 });
    check({ m: 3, n: 1100, k: 2 });
  });

  it("over shared memory", () => check({ m: 9, n: 9, k: 9 }, {}, true));

  it("batches, with a broadcast operand on either side", () => {
    const [batch, m, n, k] = [3, 4, 9, 5];
    const a = randomValues(dtype, batch * m * k, random);
    const b = randomValues(dtype, batch * k * n, random);
    const outputs = [operand(dtype, [batch, m, n])];
    const expected = (left: (i: number) => Values, right: (i: number) => Values): Values =>
      Array.from({ length: batch }, (_, i) => product(dtype, { m, n, k }, left(i), right(i))).flat();
    const leftAt = (i: number): Values => a.slice(i * m * k, (i + 1) * m * k);
    const rightAt = (i: number): Values => b.slice(i * k * n, (i + 1) * k * n);

    const whole = [operand(dtype, [batch, m, k]), operand(dtype, [batch, k, n])];
    const [both] = runKernel({ kind: "matmul", inputs: whole, outputs }, [a, b]);
    expect(firstDifference(both ?? [], expected(leftAt, rightAt))).toBeNull();

    const repeat = (values: Values): Values => Array.from({ length: batch }, () => values).flat();
    const leftOnly = [operand(dtype, [batch, m, k]), operand(dtype, [batch, k, n], [0, n, 1])];
    const [left] = runKernel({ kind: "matmul", inputs: leftOnly, outputs }, [a, repeat(rightAt(0))]);
    expect(
      firstDifference(
        left ?? [],
        expected(leftAt, () => rightAt(0)),
      ),
    ).toBeNull();

    const rightOnly = [operand(dtype, [batch, m, k], [0, k, 1]), operand(dtype, [batch, k, n])];
    const [right] = runKernel({ kind: "matmul", inputs: rightOnly, outputs }, [repeat(leftAt(0)), b]);
    expect(
      firstDifference(
        right ?? [],
        expected(() => leftAt(0), rightAt),
      ),
    ).toBeNull();
  });

  it("gives rows and columns the same bits, however they are cut out", () => {
    const [m, n, k] = [23, 29, 300];
    const a = randomValues(dtype, m * k, random);
    const b = randomValues(dtype, k * n, random);
    const inputs = [operand(dtype, [m, k]), operand(dtype, [k, n])];
    const [whole] = runKernel({ kind: "matmul", inputs, outputs: [operand(dtype, [m, n])] }, [a, b]);
    for (const [row, rows, column, columns] of [
      [0, 1, 0, n],
      [3, 7, 0, n],
      [22, 1, 28, 1],
      [5, 18, 9, 11],
    ] as const) {
      const part = [
        a.slice(row * k, (row + rows) * k),
        Array.from({ length: k }, (_, i) => b.slice(i * n + column, i * n + column + columns)).flat(),
      ];
      const shapes = [operand(dtype, [rows, k]), operand(dtype, [k, columns])];
      const outputs = [operand(dtype, [rows, columns])];
      const [found] = runKernel({ kind: "matmul", inputs: shapes, outputs }, part);
      const expected = Array.from({ length: rows }, (_, i) =>
        (whole ?? []).slice((row + i) * n + column, (row + i) * n + column + columns),
      ).flat();
      expect(firstDifference(found ?? [], expected)).toBeNull();
    }
  });

  it.each(samples)("linear with a bias, $m x $k by $n x $k", (sizes) => {
    const { m, n, k } = sizes;
    const x = randomValues(dtype, m * k, random);
    const weight = randomValues(dtype, n * k, random);
    const bias = randomValues(dtype, n, random);
    const inputs = [operand(dtype, [m, k]), operand(dtype, [n, k]), operand(dtype, [n])];
    const outputs = [operand(dtype, [m, n])];
    const expected = product(dtype, sizes, x, transposed(weight, n, k), bias);
    const [found] = runKernel({ kind: "linear", inputs, outputs }, [x, weight, bias]);
    expect(firstDifference(found ?? [], expected)).toBeNull();
    const plain = { kind: "linear", inputs: inputs.slice(0, 2), outputs } as const;
    const [without] = runKernel(plain, [x, weight]);
    expect(firstDifference(without ?? [], product(dtype, sizes, x, transposed(weight, n, k)))).toBeNull();
  });

  function checkAdding(sizes: Sizes, shapes: { a?: Operand; b?: Operand; c?: Operand } = {}): void {
    const { m, n, k } = sizes;
    const [a, b, held] = [m * k, k * n, m * n].map((length) => randomValues(dtype, length, random));
    const inputs = [shapes.a ?? operand(dtype, [m, k]), shapes.b ?? operand(dtype, [k, n])];
    const kernel = { kind: "matmul", inputs, outputs: [shapes.c ?? operand(dtype, [m, n])], accumulate: true } as const;
    const [found] = runKernel(kernel, [a ?? [], b ?? []], { held: [held ?? []] });
    expect(firstDifference(found ?? [], product(dtype, sizes, a ?? [], b ?? [], undefined, held))).toBeNull();
  }

  it.each(samples)("adds to what the output holds, $m x $k by $k x $n", (sizes) => checkAdding(sizes));

  it("adds to strided and transposed outputs, also over several blocks", () => {
    const sizes = { m: 7, n: 19, k: 6 };
    checkAdding(sizes, { c: operand(dtype, [7, 19], [2, 16]) });
    checkAdding(sizes, { c: operand(dtype, [7, 19], [1, 7]), a: operand(dtype, [7, 6], [1, 7]) });
    checkAdding({ m: 6, n: 11, k: 700 });
    checkAdding({ m: 503, n: 9, k: 3 });
    checkAdding({ m: 3, n: 1100, k: 2 });
  });

  it("adds a linear with its bias, in batches and in parts for several workers", () => {
    const [m, n, k] = [12, 10, 4];
    const [x, weight, bias, held] = [m * k, n * k, n, m * n].map((length) => randomValues(dtype, length, random));
    const inputs = [operand(dtype, [2, 6, k]), operand(dtype, [n, k]), operand(dtype, [n])];
    const outputs = [operand(dtype, [2, 6, n], [1, 20, 2])];
    const kernel = { kind: "linear", inputs, outputs, accumulate: true } as const;
    const values = [x ?? [], weight ?? [], bias ?? []];
    const expected = product(dtype, { m, n, k }, x ?? [], transposed(weight ?? [], n, k), bias, held);
    const [found] = runKernel(kernel, values, { held: [held ?? []] });
    expect(firstDifference(found ?? [], expected)).toBeNull();
    const parts = splitKernel(
      { kind: "matmul", inputs: [inputs[0] as Operand, operand(dtype, [2, k, n])], outputs, accumulate: true },
      3,
    );
    expect(parts.length).toBeGreaterThan(1);
    expect(parts.every((part) => part.kernel.kind === "matmul" && part.kernel.accumulate === true)).toBe(true);
  });

  it.each([
    ["the output", [60, 10, 1]],
    ["no other operand", [1, 2, 12]],
    ["one row", [0, 0, 1]],
  ])("adds a linear with its bias to an input, which has the strides of %s", (_, strides) => {
    const [m, n, k] = [12, 10, 4];
    const [x, weight, bias] = [m * k, n * k, n].map((length) => randomValues(dtype, length, random));
    const addend = operand(dtype, [2, 6, n], strides);
    const held = asStored(addend, randomValues(dtype, m * n, random));
    const inputs = [operand(dtype, [2, 6, k]), operand(dtype, [n, k]), operand(dtype, [n]), addend];
    const outputs = [operand(dtype, [2, 6, n], [60, 10, 1])];
    const rounded = product(dtype, { m, n, k }, x ?? [], transposed(weight ?? [], n, k), bias);
    // Rounded first, as where a kernel of its own adds.
    const expected = rounded.map((value, i) => binary("add", dtype, at(held, i), value));
    const kernel = { kind: "linear", inputs, outputs, addend: true } as const;
    const [found] = runKernel(kernel, [x ?? [], weight ?? [], bias ?? [], held]);
    expect(firstDifference(found ?? [], expected)).toBeNull();
  });

  it("linear over leading axes, a strided bias and padded rows", () => {
    const [m, n, k] = [6, 10, 4];
    const x = randomValues(dtype, m * k, random);
    const weight = randomValues(dtype, n * k, random);
    const bias = randomValues(dtype, n, random);
    const inputs = [operand(dtype, [2, 3, k], [20, 5, 1]), operand(dtype, [n, k], [1, n]), operand(dtype, [n], [3])];
    const outputs = [operand(dtype, [2, 3, n], [1, 20, 2])];
    const [found] = runKernel({ kind: "linear", inputs, outputs }, [x, weight, bias]);
    expect(firstDifference(found ?? [], product(dtype, { m, n, k }, x, transposed(weight, n, k), bias))).toBeNull();
  });
});

it("passes NaN, infinities and subnormals through half and bfloat16", () => {
  for (const dtype of ["half", "bfloat16"] as const satisfies readonly DType[]) {
    const least = dtype === "half" ? 2 ** -24 : 2 ** -133;
    const a = [1, 1, 1, NaN, Infinity, -Infinity, least, -0, 2 ** -20];
    const inputs = [operand(dtype, [9, 1]), operand(dtype, [1, 9])];
    const right = [1, 1, 1, 1, 1, 1, 1, 1, 1];
    const [found] = runKernel({ kind: "matmul", inputs, outputs: [operand(dtype, [9, 9])] }, [a, right]);
    // The sum starts from +0, so a term of -0 gives 0.
    const rows = a.map((x) => (Object.is(x, -0) ? 0 : x));
    expect(
      firstDifference(
        found ?? [],
        rows.flatMap((x) => right.map(() => x)),
      ),
    ).toBeNull();
    expect(count([9, 9])).toBe(found?.length);
  }
});
