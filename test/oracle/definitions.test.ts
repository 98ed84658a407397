/**
 * The two statements of every op over all dtypes and edges: the oracle's definitions against the expressions that
 * kernels are made of, and what the oracle says of a Fusion against kernels on the CPU, as generated JavaScript and as
 * WebAssembly.
 */
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Kernel } from "../../src/commands/kernel.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import * as api from "../../src/ir/api/ops.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import { compileBinary, compileCast, compileReduction, compileUnary } from "../kernels/compiled-expressions.ts";
import { roundPacked } from "../../src/numerics/convert.ts";
import { type DType, dtypes, isComputed, isPacked } from "../../src/numerics/dtype.ts";
import { normalCdf } from "../../src/numerics/scalar/emit-js.ts";
import { emptyTensor, type Tensor, elementsOf } from "../../src/numerics/tensor/host-tensor.ts";
import { compare } from "../../src/oracle/value.ts";
import {
  binaryDefinitions,
  binaryOf,
  castOf,
  combinationOf,
  normalDistribution,
  reductionDefinitions,
  roundTo,
  unaryDefinitions,
  unaryOf,
} from "../../src/oracle/definitions.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { at, keysOf } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { binaryFunctions } from "../../src/ir/ops/functions/binary.ts";
import { unaryFunctions } from "../../src/ir/ops/functions/unary.ts";
import { takes, unaryCalls } from "../support/unary-calls.ts";
import { arithmeticDTypes, isInexact } from "../kernels/reference.ts";
import { operand, runKernel, type Values } from "../kernels/run-kernel.ts";
import { edgePairs, edges, firstDifference, randomValues } from "../kernels/values.ts";

const everyDType = keysOf(dtypes);
const computedDTypes = everyDType.filter(isComputed);
const random = createRandom(41);

/** Edges, the ends of other dtypes, and random values. */
function samplesOf(dtype: DType): Values {
  const ends = [2 ** 31, -(2 ** 31), 2 ** 63, -(2 ** 63), 2 ** 53, 1.75, -1.75, 88.8, -104, 709.8];
  const wide = [2n ** 62n + 2n ** 38n + 1n, 2n ** 53n + 1n, -(2n ** 40n), 2n ** 24n + 1n];
  const more = dtype === "int64" ? wide : dtype === "double" ? ends : dtype === "float" ? ends.map(Math.fround) : [];
  return [...edges[dtype], ...more, ...randomValues(dtype, 300, random)];
}

interface Operand {
  readonly dtype: DType;
  readonly values: Values;
}

function tensorOf({ dtype, values }: Operand): Tensor {
  const tensor = emptyTensor(dtype, [values.length]);
  const elements = elementsOf(tensor.dtype, tensor.data);
  for (const [i, value] of values.entries()) elements.set(i, value);
  return tensor;
}

/** A kernel's results, in both forms, lie within the bounds of the oracle's. Gives how many elements have no bound. */
function unboundedOf(kernel: Kernel, operands: readonly Operand[], build: (f: Fusion) => TensorView): number {
  const f = new Fusion();
  f.output(build(f));
  const { outputs, bounds } = evaluateFusion(f.data(), operands.map(tensorOf));
  const [expected, bound] = [at(outputs, 0), at(bounds, 0)];
  const inputs = operands.map(({ values }) => values);
  const found = tensorOf({ dtype: expected.dtype, values: at(runKernel(kernel, inputs), 0) });
  const { firstBad, unbounded } = compare({ ...found, shape: expected.shape }, expected, bound);
  expect(firstBad).toBeNull();
  return unbounded;
}

const binaries: { readonly [Op in keyof typeof binaryDefinitions]: (x: TensorView, y: TensorView) => TensorView } = api;
const reductions: {
  readonly [Op in keyof typeof reductionDefinitions]: (x: TensorView, axes: readonly number[]) => TensorView;
} = api;

describe.each(keysOf(unaryDefinitions))("%s", (op) => {
  const { operand: taken } = unaryFunctions[op];
  it.each(everyDType.filter((dtype) => takes(taken, dtype)))("of %s", (dtype) => {
    const values = samplesOf(dtype);
    const flat = operand(dtype, [values.length]);
    const kernel = { kind: "unary", op, inputs: [flat], outputs: [flat] } as const;
    // Twice the largest result of double's samples overflows.
    const most = dtype === "double" && (op === "sinh" || op === "cosh") ? 1 : 0;
    expect(unboundedOf(kernel, [{ dtype, values }], (f) => unaryCalls[op](f.input(flat.shape, dtype)))).toBe(most);
    if (isInexact(op, dtype)) return;
    const defined = values.map((x) => unaryOf(op, dtype, x));
    expect(firstDifference(values.map(compileUnary(op, dtype)), defined)).toBeNull();
  });
});

describe.each(keysOf(binaryDefinitions))("%s", (op) => {
  const { operand: taken, result } = binaryFunctions[op];
  it.each(everyDType.filter((dtype) => takes(taken, dtype)))("of %s", (dtype) => {
    const { left, right } = edgePairs(dtype);
    const flat = operand(dtype, [left.length]);
    const outputs = [operand(result === "bool" ? "bool" : dtype, [left.length])];
    const kernel = { kind: "binary", op, inputs: [flat, flat], outputs } as const;
    const operands = [left, right].map((values) => ({ dtype, values }));
    const build = (f: Fusion): TensorView => binaries[op](f.input(flat.shape, dtype), f.input(flat.shape, dtype));
    // Twice the largest power of double's edges overflows.
    expect(unboundedOf(kernel, operands, build)).toBe(op === "pow" && dtype === "double" ? 1 : 0);
    const compiled = compileBinary(op, dtype);
    const defined = left.map((x, i) => binaryOf(op, dtype, x, at(right, i)));
    expect(
      firstDifference(
        left.map((x, i) => compiled(x, at(right, i))),
        defined,
      ),
    ).toBeNull();
  });
});

describe.each(keysOf(reductionDefinitions))("%s", (op) => {
  it.each(reductionDefinitions[op].accumulates === null ? computedDTypes : arithmeticDTypes)("of %s", (dtype) => {
    const { left, right } = edgePairs(dtype);
    const values = [...left, ...right];
    const [whole, kept] = [operand(dtype, [2, left.length]), operand(dtype, [left.length])];
    const kernel = { kind: "reduction", op, axes: [0], inputs: [whole], outputs: [kept] } as const;
    const build = (f: Fusion): TensorView => {
      const x = f.input([values.length], dtype);
      return reductions[op](api.reshape(x, whole.shape), [0]);
    };
    // Where two numbers overflow the accumulator nothing can be said: another order may overflow elsewhere.
    expect(unboundedOf(kernel, [{ dtype, values }], build)).toBeLessThan(left.length / 3);
    const { identity, combine } = compileReduction(op, dtype);
    const accumulator = dtype === "half" || dtype === "bfloat16" ? "float" : dtype;
    const defined = left.map((x, i) => combinationOf(op, accumulator, x, at(right, i)));
    expect(
      firstDifference(
        left.map((x, i) => combine(x, at(right, i))),
        defined,
      ),
    ).toBeNull();
    expect(
      firstDifference(
        left.map((x) => combine(identity, x)),
        left,
      ),
    ).toBeNull();
  });
});

describe.each(everyDType)("cast from %s", (from) => {
  it.each(everyDType)("to %s", (to) => {
    const values = samplesOf(from);
    const kernel: Kernel = {
      kind: "cast",
      inputs: [operand(from, [values.length])],
      outputs: [operand(to, [values.length])],
    };
    const build = (f: Fusion): TensorView => api.cast(f.input([values.length], from), to);
    expect(unboundedOf(kernel, [{ dtype: from, values }], build)).toBe(0);
    const defined = values.map((x) => castOf(from, to, x));
    expect(firstDifference(values.map(compileCast(from, to)), defined)).toBeNull();
  });
});

describe("rounding", () => {
  it("of every word of a packed dtype, and of what lies between two of them", () => {
    for (const dtype of keysOf(dtypes).filter(isPacked)) {
      const round = (x: number): number => roundPacked(dtype, x);
      const count = 2 ** (8 * dtypes[dtype].bytes);
      const words = emptyTensor(dtype, [count]);
      for (let word = 0; word < count; word++) words.data[word] = word;
      const elements = elementsOf(words.dtype, words.data);
      const bits = new Uint32Array(1);
      const float = new Float32Array(bits.buffer);
      for (let word = 0; word < count; word++) {
        float[0] = Number(elements.get(word));
        const start = at(bits, 0);
        for (const step of [
          0, 1, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0x7_ffff, 0x8_0000, 0x8_0001, 0xf_ffff, 0x10_0000,
          0x10_0001,
        ]) {
          bits[0] = start + step;
          const x = at(float, 0);
          if (!Object.is(roundTo(dtype, x), round(x)))
            expect.fail(`${dtype} of ${x}: ${roundTo(dtype, x)}, not ${round(x)}`);
        }
      }
    }
  });

  it("of the normal distribution: both statements agree to some units of double", () => {
    for (let i = -3800; i <= 3800; i++) {
      const [one, other] = [normalDistribution(i / 100), normalCdf(i / 100)];
      // exp(-x^2 / 2) loses as many units as its argument has.
      expect(Math.abs(one - other), `at ${i / 100}`).toBeLessThanOrEqual(
        other * 2 ** -50 * (4 + (i / 100) ** 2) + 2 ** -1068,
      );
    }
  });
});

it("is a statement of its own: the oracle imports no expression, no row of an op and no kernel", () => {
  const folder = new URL("../../src/oracle/", import.meta.url);
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
  const imports = files.flatMap((file) =>
    Array.from(
      readFileSync(new URL(file, folder), "utf8").matchAll(/^import (?!type)[^;]*? from "([^"]+)";$/gm),
      (found) => ({
        file,
        path: found[1] ?? "",
      }),
    ),
  );
  expect(imports.length).toBeGreaterThan(20);
  const checked = /numerics\/scalar|ir\/ops\/(functions|kinds|rows?\.ts)|kernels|passes|commands/;
  expect(imports.filter(({ path }) => checked.test(path))).toEqual([]);
});
