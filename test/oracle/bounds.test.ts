/**
 * The oracle's bounds hold for float32 accumulation in any order and for rounding on every hop, and are tight enough to
 * reveal a missing term.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { add, cast, div, exp, gelu, linear, matmul, mul, prod, relu, set, sub, sum } from "../../src/ir/api/ops.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import { DeviceMesh } from "../../src/ir/device-mesh.ts";
import { roundPacked } from "../../src/numerics/convert.ts";
import { accumulatorOf, type DType } from "../../src/numerics/dtype.ts";
import { Tensor } from "../../src/numerics/tensor/host-tensor.ts";
import { compare } from "../../src/oracle/value.ts";
import { evaluateFusion, type OracleResult } from "../../src/oracle/evaluate.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { blockRoundings, contractionRoundings, gamma } from "../../src/oracle/tolerance.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { reduce } from "../kernels/reference.ts";

const rounding = {
  float: Math.fround,
  half: (x: number) => roundPacked("half", x),
  bfloat16: (x: number) => roundPacked("bfloat16", x),
} as const;
type NarrowFloat = keyof typeof rounding;
const narrowFloats = ["float", "half", "bfloat16"] as const satisfies readonly NarrowFloat[];

interface Built {
  readonly f: Fusion;
  readonly inputs: readonly Tensor[];
  readonly result: OracleResult;
}

function build(
  shapes: readonly (readonly number[])[],
  dtype: DType,
  seed: number,
  call: (...tv: TensorView[]) => TensorView,
): Built {
  const f = new Fusion();
  const views = shapes.map((shape) => f.input(shape, dtype));
  f.output(call(...views));
  const inputs = randomInputs(
    shapes.map((shape) => ({ shape, dtype })),
    createRandom(seed),
    "uniform",
  );
  return { f, inputs, result: evaluateFusion(f.data(), inputs) };
}

/** Compares elements with the first output. */
function against({ result }: Built, values: readonly number[], dtype: DType): ReturnType<typeof compare> {
  const expected = at(result.outputs, 0);
  const actual = { ...Tensor.from(values, dtype), shape: expected.shape };
  return compare(actual, expected, at(result.bounds, 0));
}

const numbers = (tensor: Tensor): number[] => Tensor.values(tensor).map(Number);

/** sum of terms in float32, in the order of `order`, by halves if `pairwise`. */
function float32Sum(terms: readonly number[], pairwise: boolean): number {
  if (!pairwise) return terms.reduce((total, term) => Math.fround(total + term), 0);
  if (terms.length <= 2) return terms.reduce((total, term) => Math.fround(total + term), 0);
  const middle = terms.length >> 1;
  return Math.fround(float32Sum(terms.slice(0, middle), true) + float32Sum(terms.slice(middle), true));
}

const shuffled = <T>(items: readonly T[], seed: number): T[] => {
  const random = createRandom(seed);
  const result = [...items];
  for (let i = result.length - 1; i > 0; i--) {
    const j = random.integer(i + 1);
    [result[i], result[j]] = [at(result, j), at(result, i)];
  }
  return result;
};

const arbitrary = {
  seed: fc.integer({ min: 0, max: 2 ** 31 }),
  dtype: fc.constantFrom(...narrowFloats),
  pairwise: fc.boolean(),
};

describe("bounds of contractions and reductions", () => {
  it("hold for a dot product in float32 in any order", () => {
    fc.assert(
      fc.property(
        arbitrary.seed,
        arbitrary.dtype,
        arbitrary.pairwise,
        fc.integer({ min: 1, max: 300 }),
        (seed, dtype, pairwise, count) => {
          const built = build([[count], [count]], dtype, seed, (...tv) => matmul(at(tv, 0), at(tv, 1)));
          const [a, b] = [numbers(at(built.inputs, 0)), numbers(at(built.inputs, 1))];
          const terms = shuffled(
            a.map((x, i) => Math.fround(x * at(b, i))),
            seed,
          );
          const comparison = against(built, [rounding[dtype](float32Sum(terms, pairwise))], dtype);
          expect(comparison.firstBad).toBeNull();
          expect(comparison.maxRatio).toBeLessThanOrEqual(1);
        },
      ),
    );
  });

  it("hold for linear with a bias, for sum and for prod", () => {
    fc.assert(
      fc.property(
        arbitrary.seed,
        arbitrary.dtype,
        arbitrary.pairwise,
        fc.integer({ min: 1, max: 60 }),
        (seed, dtype, pairwise, count) => {
          const round = rounding[dtype];
          const line = build([[count], [1, count], [1]], dtype, seed, (...tv) =>
            linear(at(tv, 0), at(tv, 1), at(tv, 2)),
          );
          const [x, w, bias] = line.inputs.map(numbers);
          if (x === undefined || w === undefined || bias === undefined) throw new Error("three inputs");
          const products = x.map((value, i) => Math.fround(value * at(w, i)));
          expect(
            against(line, [round(Math.fround(float32Sum(products, pairwise) + at(bias, 0)))], dtype).firstBad,
          ).toBeNull();

          const total = build([[count]], dtype, seed, (...tv) => sum(at(tv, 0), [0]));
          const terms = shuffled(numbers(at(total.inputs, 0)), seed);
          expect(against(total, [round(float32Sum(terms, pairwise))], dtype).firstBad).toBeNull();

          const product = build([[count]], dtype, seed, (...tv) => prod(at(tv, 0), [0]));
          const factors = shuffled(numbers(at(product.inputs, 0)), seed);
          expect(
            against(product, [round(factors.reduce((p, value) => Math.fround(p * value), 1))], dtype).firstBad,
          ).toBeNull();
        },
      ),
    );
  });

  it("hold for a ring that rounds to the dtype on every hop, but only over a device axis", () => {
    let outside = 0;
    fc.assert(
      fc.property(
        arbitrary.seed,
        fc.constantFrom("half", "bfloat16"),
        fc.integer({ min: 2, max: 8 }),
        (seed, dtype, devices) => {
          const sharded = build([[devices, 5]], dtype, seed, (...tv) => {
            const x = at(tv, 0).setDeviceMesh(DeviceMesh.range(devices));
            x.axis(0).parallelize("DIDx");
            return sum(x, [0]);
          });
          const local = build([[devices, 5]], dtype, seed, (...tv) => sum(at(tv, 0), [0]));
          const values = numbers(at(sharded.inputs, 0));
          const ring = Array.from({ length: 5 }, (_, column) =>
            Array.from({ length: devices }, (_unused, row) => at(values, row * 5 + column)).reduce((total, value) =>
              rounding[dtype](Math.fround(total + value)),
            ),
          );
          expect(against(sharded, ring, dtype).firstBad).toBeNull();
          if (against(local, ring, dtype).firstBad !== null) outside++;
        },
      ),
    );
    expect(outside).toBeGreaterThan(0);
  });

  it("show a missing term", () => {
    for (const dtype of narrowFloats) {
      const built = build([[64], [64]], dtype, 7, (...tv) => matmul(at(tv, 0), at(tv, 1)));
      const [a, b] = [numbers(at(built.inputs, 0)), numbers(at(built.inputs, 1))];
      const terms = a.map((x, i) => x * at(b, i));
      const rest = float32Sum(terms.slice(1), false);
      const { firstBad, maxRatio } = against(built, [rounding[dtype](rest)], dtype);
      expect(firstBad).toMatchObject({ index: 0 });
      expect(maxRatio).toBeGreaterThan(4);
    }
  });

  it("stay near the rounding of the dtype", () => {
    const built = build(
      [
        [8, 32],
        [32, 8],
      ],
      "half",
      3,
      (...tv) => matmul(at(tv, 0), at(tv, 1)),
    );
    const values = numbers(at(built.result.outputs, 0));
    [...at(built.result.bounds, 0)].forEach((bound, i) => {
      expect(bound).toBeLessThan(2.1 * 2 ** -11 * Math.abs(at(values, i)) + 32 * 16 * 2 ** -24);
    });
  });
});

describe("roundings of long sums", () => {
  it("grow like the logarithm of the number of terms, and never leave a sum without a bound", () => {
    expect([1, 2, 64, 65, 4096, 2 ** 25, 2 ** 40].map((terms) => blockRoundings(terms))).toEqual([
      0, 1, 63, 64, 128, 258, 400,
    ]);
    for (const dtype of ["float", "half", "double"] as const) {
      expect(gamma(blockRoundings(2 ** 50), accumulatorOf(dtype))).toBeLessThan(2 ** -14);
    }
  });

  it("of a contraction in the order of a library grow with the terms: there is no bound from 2^24 on", () => {
    const roundings = (terms: number, blocksContractions: boolean): number =>
      contractionRoundings(terms, "float", { blocksContractions, keepsNaN: true });
    expect([1, 300, 4096].map((terms) => roundings(terms, false))).toEqual([1, 300, 4096]);
    expect([1, 256, 300, 4096, 2 ** 25].map((terms) => roundings(terms, true))).toEqual([1, 256, 259, 273, 417]);
    expect(gamma(roundings(2 ** 24, false), "float")).toBe(Infinity);
    expect(gamma(roundings(2 ** 24, true), "float")).toBeLessThan(2 ** -14);
  });

  it("admit the sums of the kernels", () => {
    const values = Array.from({ length: 300_000 }, (_, i) => Math.fround(0.1 + (i % 7) / 100));
    const f = new Fusion();
    f.output(sum(f.input([values.length], "float"), [0]));
    const { outputs, bounds } = evaluateFusion(f.data(), [Tensor.from(values)]);
    const found = Tensor.from(Number(reduce("sum", "float", values)));
    const { firstBad, maxRatio } = compare(found, at(outputs, 0), at(bounds, 0));
    expect(firstBad).toBeNull();
    expect(maxRatio).toBeLessThan(0.5);
    // One accumulator is off by more than the bound says.
    const single = values.reduce((total, x) => Math.fround(total + x), 0);
    expect(compare(Tensor.from(single), at(outputs, 0), at(bounds, 0)).firstBad).not.toBeNull();
  });
});

describe("bounds of elementwise ops", () => {
  const exact = (call: (x: TensorView, y: TensorView) => TensorView, dtype: DType): boolean =>
    at(build([[50], [50]], dtype, 11, (...tv) => call(at(tv, 0), at(tv, 1))).result.bounds, 0).every((b) => b === 0);

  it("are 0 where every back end rounds correctly", () => {
    for (const dtype of ["double", ...narrowFloats] as const) {
      for (const call of [add, sub, mul, div, (x: TensorView) => relu(x), (x: TensorView) => set(x)]) {
        expect(exact(call, dtype)).toBe(true);
      }
    }
    expect(exact((x) => cast(x, "int"), "float")).toBe(true);
    expect(exact((x, y) => matmul(x, y), "int")).toBe(true);
    expect(exact((x) => sum(x, [0]), "int64")).toBe(true);
    expect(exact((x) => exp(x), "float")).toBe(false);
    expect(exact((x) => gelu(x), "half")).toBe(false);
  });

  it("follow errors through later ops", () => {
    // The sum may be at either end of its bound; the results of the later ops must stay inside their bounds.
    const chain = (s: TensorView, y: TensorView): TensorView =>
      exp(cast(sub(mul(gelu(s), y), div(s, add(y, y))), "double"));
    fc.assert(
      fc.property(arbitrary.seed, arbitrary.dtype, fc.constantFrom(-1, 1), (seed, dtype, end) => {
        const built = build([[40], []], dtype, seed, (...tv) => {
          const s = sum(at(tv, 0), [0]);
          return chain(s, at(tv, 1));
        });
        const total = build([[40], []], dtype, seed, (...tv) => sum(at(tv, 0), [0]));
        const exactSum = Number(at(numbers(at(total.result.outputs, 0)), 0));
        const moved = rounding[dtype](Math.fround(exactSum + end * 0.9 * at(at(total.result.bounds, 0), 0)));
        const f = new Fusion();
        f.output(chain(f.input([], dtype), f.input([], dtype)));
        const inputs = [Tensor.from(moved, dtype), at(built.inputs, 1)];
        const rerun = evaluateFusion(f.data(), inputs);
        const comparison = compare(at(rerun.outputs, 0), at(built.result.outputs, 0), at(built.result.bounds, 0));
        expect(comparison.firstBad).toBeNull();
      }),
    );
  });

  it("admit either side of a truncation, of zero and of an overflow", () => {
    const f = new Fusion();
    const x = f.input([2], "float");
    const s = sum(x, [0]);
    for (const y of [cast(s, "int"), cast(s, "bool"), cast(s, "half"), div(s, s), mul(cast(s, "int"), cast(s, "int"))])
      f.output(y);
    const boundsFor = (...values: readonly number[]): readonly number[] =>
      evaluateFusion(f.data(), [Tensor.from([...values])]).bounds.map((bounds) => at(bounds, 0));
    const [nearInteger] = boundsFor(3, -1e-7);
    expect(nearInteger).toBe(1);
    expect(boundsFor(2.25, 0.25)[0]).toBe(0);
    expect(boundsFor(1, -1).slice(0, 2)).toEqual([0, 1]);
    expect(boundsFor(1, -1)[3]).toBe(Infinity);
    expect(boundsFor(65519.999, 0.0001)[2]).toBe(Infinity);
    expect(boundsFor(100, 1)[2]).toBeLessThan(0.11);
    expect(boundsFor(3, -1e-7)[4]).toBe(7);
  });

  it("are infinite where an accumulator may overflow, and 0 where operands are infinite or NaN", () => {
    const boundOf = (dtype: DType, call: (x: TensorView) => TensorView, values: readonly number[]): number => {
      const f = new Fusion();
      f.output(call(f.input([values.length], dtype)));
      return at(at(evaluateFusion(f.data(), [Tensor.from([...values], dtype)]).bounds, 0), 0);
    };
    const total = (x: TensorView): TensorView => sum(x, [0]);
    const dot = (x: TensorView): TensorView => matmul(x, x);
    expect(boundOf("float", total, [3e38, 3e38, -3e38])).toBe(Infinity);
    expect(boundOf("float", (x) => prod(x, [0]), [1e30, 1e30, 1e-30])).toBe(Infinity);
    expect(boundOf("float", dot, [1e20, 1])).toBe(Infinity);
    expect(boundOf("half", total, [65504, 65504, -65504])).toBeLessThan(100);
    for (const call of [total, dot]) {
      expect(boundOf("float", call, [Infinity, 1])).toBe(0);
      expect(boundOf("float", call, [NaN, 1])).toBe(0);
    }
    expect(boundOf("float", total, [Infinity, -Infinity])).toBe(0);
    expect(boundOf("double", total, [1.5e308, 1.5e308, -1.5e308])).toBe(Infinity);
    expect(boundOf("double", dot, [1e200, 1e200])).toBe(Infinity);
  });

  it.each(["float", "double"] as const)("of 0 times NaN in %s, unless a program by hand may leave it out", (dtype) => {
    const f = new Fusion();
    const [x, y] = [f.input([3], dtype), f.input([3], dtype)];
    for (const output of [matmul(x, y), mul(x, y)]) f.output(output);
    const boundsOf = (second: readonly number[], skipsZeros: boolean): readonly (readonly number[])[] => {
      const inputs = [[0, 1, 2], second].map((values) => Tensor.from([...values], dtype));
      const arithmetic = { blocksContractions: true, keepsNaN: true, skipsZeros };
      return evaluateFusion(f.data(), inputs, undefined, arithmetic).bounds.map((bounds) => [...bounds]);
    };
    for (const special of [NaN, Infinity]) {
      expect(boundsOf([special, 1, 2], false)).toEqual([[0], [0, 0, 0]]);
      expect(boundsOf([special, 1, 2], true)).toEqual([[Infinity], [Infinity, 0, 0]]);
      expect(boundsOf([1, special, 2], true)).toEqual([[0], [0, 0, 0]]);
    }
  });
});

describe("compare", () => {
  it("takes NaN as equal to NaN and 0 to -0, and counts elements without a bound", () => {
    const expected = Tensor.from([NaN, 0, Infinity, 1, 2]);
    const bounds = Float64Array.of(0, 0, 0, Infinity, 0);
    expect(compare(Tensor.from([NaN, -0, Infinity, 7, 2]), expected, bounds)).toEqual({
      maxError: 0,
      maxRatio: 0,
      firstBad: null,
      unbounded: 1,
    });
  });

  it("names the first element outside its bound", () => {
    const expected = Tensor.from([1, 2, 3]);
    const bounds = Float64Array.of(1, 0.5, 0);
    expect(compare(Tensor.from([1.5, 3, 4]), expected, bounds)).toEqual({
      maxError: 1,
      maxRatio: Infinity,
      firstBad: { index: 1, actual: 3, expected: 2, error: 1, bound: 0.5 },
      unbounded: 0,
    });
    expect(compare(Tensor.from([1.5, 2, 3]), expected, bounds)).toEqual({
      maxError: 0.5,
      maxRatio: 0.5,
      firstBad: null,
      unbounded: 0,
    });
  });

  it("counts NaN and infinity for a number as infinite errors, and compares int64 exactly", () => {
    const bounds = Float64Array.of(1e300);
    expect(compare(Tensor.from([NaN]), Tensor.from([1]), bounds).maxError).toBe(Infinity);
    expect(compare(Tensor.from([1]), Tensor.from([NaN]), bounds).firstBad?.error).toBe(Infinity);
    expect(compare(Tensor.from([-Infinity]), Tensor.from([Infinity]), bounds).firstBad?.error).toBe(Infinity);
    const big = 2n ** 62n;
    const zero = Float64Array.of(0);
    expect(compare(Tensor.from([big + 1n], "int64"), Tensor.from([big], "int64"), zero).firstBad?.error).toBe(1);
  });
});
