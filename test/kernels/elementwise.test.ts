/**
 * unary, binary, fill and combine: every op with every dtype, over edge values, strides and in place. Casts are in
 * test/oracle/definitions.test.ts.
 */
import { describe, expect, it } from "vitest";
import type { BinaryKernel, Operand, UnaryKernel } from "../../src/commands/kernel.ts";
import { type DType, dtypes } from "../../src/numerics/dtype.ts";
import type { Value } from "../../src/numerics/tensor/host-tensor.ts";
import { at, keysOf } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { compileUnary } from "./compiled-expressions.ts";
import { arithmeticDTypes, binary, cast, floatDTypes, floatFunctions, isInexact, reduce, unary } from "./reference.ts";
import { count, operand, runKernel, type Values } from "./run-kernel.ts";
import { edgePairs, edges, firstDifference, randomValues } from "./values.ts";

const everyDType = keysOf(dtypes);
const random = createRandom(17);

function flat(dtype: DType, values: Values): Operand {
  return operand(dtype, [values.length]);
}

function samplesOf(dtype: DType): Values {
  return [...edges[dtype], ...randomValues(dtype, 200, random)];
}

function unaryKernel(op: UnaryKernel["op"], input: Operand, output = operand(input.dtype, input.shape)): UnaryKernel {
  return { kind: "unary", op, inputs: [input], outputs: [output] };
}

function binaryKernel(op: BinaryKernel["op"], left: Operand, right: Operand, output?: Operand): BinaryKernel {
  return { kind: "binary", op, inputs: [left, right], outputs: [output ?? operand(left.dtype, left.shape)] };
}

describe.each(["neg", "abs", "relu", "sign", ...floatFunctions] as const)("%s", (op) => {
  it.each(floatFunctions.includes(op) ? floatDTypes : arithmeticDTypes)("of %s", (dtype) => {
    const values = samplesOf(dtype);
    const [found = []] = runKernel(unaryKernel(op, flat(dtype, values)), [values]);
    const statement = isInexact(op, dtype) ? compileUnary(op, dtype) : (x: Value) => unary(op, dtype, x);
    expect(firstDifference(found, values.map(statement))).toBeNull();
  });
});

describe("gelu", () => {
  it.each(floatDTypes)("of %s", (dtype) => {
    const values = [0, -0, Infinity, -Infinity, NaN, 1, -1, 3, -0.5, 40, -40];
    const [found = []] = runKernel(unaryKernel("gelu", flat(dtype, values)), [values]);
    expect(found.slice(0, 5)).toEqual([0, -0, Infinity, NaN, NaN]);
    // x * (1 + erf(x / sqrt 2)) / 2, from 40-digit arithmetic.
    const exact = [0.8413447460685429, -0.15865525393145705, 2.99595030590511, -0.15426876936299344, 40, -0];
    for (const [i, expected] of exact.entries()) {
      // 16-bit floats are computed in float, whose errors are relative to the operand.
      const own = dtype === "double" ? 2 ** -50 : dtypes[dtype].epsilon;
      const operandError = dtype === "double" ? 0 : 4 * dtypes.float.epsilon * Math.abs(values[i + 5] ?? NaN);
      expect(Math.abs(Number(found[i + 5]) - expected)).toBeLessThanOrEqual(Math.abs(expected) * own + operandError);
    }
  });
});

describe.each(["add", "sub", "mul", "div"] as const)("%s", (op) => {
  it.each(arithmeticDTypes)("of %s", (dtype) => {
    const { left, right } = edgePairs(dtype);
    const x = [...left, ...randomValues(dtype, 200, random)];
    const y = [...right, ...randomValues(dtype, 200, random)];
    const [found = []] = runKernel(binaryKernel(op, flat(dtype, x), flat(dtype, y)), [x, y]);
    expect(
      firstDifference(
        found,
        x.map((value, i) => binary(op, dtype, value, at(y, i))),
      ),
    ).toBeNull();
  });
});

describe("strides", () => {
  const shape = [3, 4, 5];
  const layouts: readonly (readonly number[])[] = [
    [20, 5, 1],
    [1, 3, 12],
    [5, 15, 1],
    [40, 10, 2],
    [64, 7, 1],
  ];
  const x = randomValues("float", count(shape), random);
  const y = randomValues("float", count(shape), random);
  const expected = x.map((value, i) => binary("sub", "float", value, at(y, i)));

  it.each(layouts)("of the left operand: %d %d %d", (...strides) => {
    const left = operand("float", shape, strides);
    const [found = []] = runKernel(binaryKernel("sub", left, operand("float", shape)), [x, y]);
    expect(firstDifference(found, expected)).toBeNull();
  });

  it.each(layouts)("of the output: %d %d %d", (...strides) => {
    const whole = operand("float", shape);
    const kernel = binaryKernel("sub", whole, whole, operand("float", shape, strides));
    expect(firstDifference(runKernel(kernel, [x, y])[0] ?? [], expected)).toBeNull();
  });

  it("of 0 repeat an operand along that axis", () => {
    const rows = operand("float", shape, [5, 0, 1]);
    const repeated = Array.from({ length: count(shape) }, (_, i) => at(y, Math.floor(i / 20) * 5 + (i % 5)));
    const [found = []] = runKernel(binaryKernel("sub", operand("float", shape), rows), [x, repeated]);
    expect(
      firstDifference(
        found,
        x.map((value, i) => binary("sub", "float", value, at(repeated, i))),
      ),
    ).toBeNull();
  });

  it("along axes of one element do not matter", () => {
    const left = operand("float", [1, 20, 1], [7, 1, 9]);
    const right = operand("float", [1, 20, 1]);
    const [found = []] = runKernel(binaryKernel("sub", left, right), [x.slice(0, 20), y.slice(0, 20)]);
    expect(firstDifference(found, expected.slice(0, 20))).toBeNull();
  });

  it("of a tensor without axes", () => {
    const scalar = operand("float", []);
    const [found = []] = runKernel(binaryKernel("sub", scalar, scalar), [x.slice(0, 1), y.slice(0, 1)]);
    expect(firstDifference(found, expected.slice(0, 1))).toBeNull();
  });
});

describe("in place", () => {
  it.each(arithmeticDTypes)("%s", (dtype) => {
    const shape = [4, 6];
    const place = operand(dtype, shape, [1, 5]);
    const x = randomValues(dtype, 24, random);
    const y = randomValues(dtype, 24, random);
    const [negated = []] = runKernel(unaryKernel("neg", place, place), [x], { inPlace: 0 });
    expect(
      firstDifference(
        negated,
        x.map((value) => unary("neg", dtype, value)),
      ),
    ).toBeNull();
    for (const inPlace of [0, 1]) {
      const [found = []] = runKernel(binaryKernel("sub", place, place, place), [x, y], { inPlace });
      expect(
        firstDifference(
          found,
          x.map((value, i) => binary("sub", dtype, value, at(y, i))),
        ),
      ).toBeNull();
    }
  });

  it.each([
    ["float", "int"],
    ["double", "int64"],
    ["half", "bfloat16"],
    ["int64", "double"],
  ] as const)("cast from %s to %s", (from, to) => {
    const values = samplesOf(from);
    const kernel = { kind: "cast", inputs: [flat(from, values)], outputs: [flat(to, values)] } as const;
    const [found = []] = runKernel(kernel, [values], { inPlace: 0 });
    expect(
      firstDifference(
        found,
        values.map((x) => cast(from, to, x)),
      ),
    ).toBeNull();
  });
});

describe("fill", () => {
  it.each(everyDType)("%s", (dtype) => {
    for (const strides of [
      [4, 1],
      [1, 3],
      [9, 2],
    ]) {
      const [found] = runKernel({ kind: "fill", inputs: [], outputs: [operand(dtype, [3, 4], strides)] }, []);
      expect(found).toEqual(Array.from({ length: 12 }, () => (dtype === "int64" ? 0n : 0)));
    }
  });
});

describe.each(["sum", "prod", "amax", "amin"] as const)("combine by %s", (op) => {
  const fitting = op === "sum" || op === "prod" ? arithmeticDTypes : everyDType;

  it.each(fitting)("%s parts", (dtype) => {
    const { left, right } = edgePairs(dtype);
    for (const [first, ...others] of [[left], [left, right], [left, right, right.toReversed(), left.toReversed()]]) {
      const parts = [first ?? [], ...others];
      const inputs = parts.map((part) => flat(dtype, part));
      const kernel = { kind: "combine", op, inputs, outputs: [flat(dtype, left)] } as const;
      const expected = left.map((_, i) =>
        reduce(
          op,
          dtype,
          parts.map((part) => at(part, i)),
        ),
      );
      expect(firstDifference(runKernel(kernel, parts)[0] ?? [], expected)).toBeNull();
      for (const inPlace of parts.keys()) {
        expect(firstDifference(runKernel(kernel, parts, { inPlace })[0] ?? [], expected)).toBeNull();
      }
    }
  });
});

describe("combine into several outputs", () => {
  it.each(everyDType)("%s, in place and of other strides", (dtype) => {
    const op = "amax";
    const parts = [0, 1, 2].map(() => randomValues(dtype, 3 * 40, random));
    const expected = parts[0]?.map((_, i) =>
      reduce(
        op,
        dtype,
        parts.map((part) => at(part, i)),
      ),
    );
    const all = (each: readonly Operand[]): readonly (Values | undefined)[] => each.map(() => expected);
    const rows = operand(dtype, [3, 40]);
    const [columns, apart] = [operand(dtype, [3, 40], [1, 3]), operand(dtype, [3, 40], [50, 1])];
    const inputs = [rows, rows, rows];
    for (const outputs of [
      [rows, rows, rows],
      [columns, rows, apart],
      [apart, apart, columns, rows],
    ]) {
      expect(runKernel({ kind: "combine", op, inputs, outputs }, parts)).toEqual(all(outputs));
    }
    for (const inPlace of parts.keys()) {
      expect(runKernel({ kind: "combine", op, inputs, outputs: inputs }, parts, { inPlace })).toEqual(all(inputs));
      expect(runKernel({ kind: "combine", op, inputs, outputs: [rows, rows] }, parts, { inPlace })).toEqual(
        all([rows, rows]),
      );
    }
  });
});

it("rounds a combination of half parts once", () => {
  const parts = [[2048], [1], [1]];
  const inputs = parts.map(() => operand("half", [1]));
  const kernel = { kind: "combine", op: "sum", inputs, outputs: [operand("half", [1])] } as const;
  // Rounded at each step, 2048 + 1 would stay 2048.
  expect(runKernel(kernel, parts)).toEqual([[2050]]);
});
